import java.io.IOException;
import java.util.concurrent.Callable;

/** Questions to the name servers of NAMESRV_ADDR: a slow one is asked once more, and an error names the address. */
final class NameServer {
    static final String ADDRESSES = System.getenv("NAMESRV_ADDR");

    private NameServer() {
    }

    static <T> T ask(Callable<T> question) throws Exception {
        try {
            return question.call();
        } catch (Exception first) {
            System.err.println("collect: the name server " + ADDRESSES + " is asked once more: " + first);
        }
        try {
            return question.call();
        } catch (Exception second) {
            throw new IOException("the name server " + ADDRESSES + " does not answer: " + second, second);
        }
    }
}
