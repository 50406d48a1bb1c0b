import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Properties;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.remoting.RPCHook;

/** Access and secret key: from the environment or from a file that it names, never from the command line. */
final class Credentials {
    static final int NO_PERMISSION = 16;

    private Credentials() {
    }

    /**
     * The hook that signs every question; null without credentials.
     *
     * @throws IllegalArgumentException when only one of the two keys is given
     */
    static RPCHook fromEnvironment() throws IOException {
        String accessKey = System.getenv("ROCKETMQ_ACCESS_KEY");
        String secretKey = System.getenv("ROCKETMQ_SECRET_KEY");
        String file = System.getenv("ROCKETMQ_CREDENTIALS");
        if (file != null) {
            // "accessKey: …" and "secretKey: …" of conf/tools.yml are properties, too.
            Properties properties = new Properties();
            try (Reader reader = Files.newBufferedReader(Paths.get(file))) {
                properties.load(reader);
            }
            accessKey = unquoted(properties.getProperty("accessKey"));
            secretKey = unquoted(properties.getProperty("secretKey"));
        }
        if ((accessKey == null) != (secretKey == null) || (file != null && accessKey == null)) {
            throw new IllegalArgumentException("credentials need both: an access key and a secret key");
        }
        return accessKey == null ? null : new AclClientRPCHook(new SessionCredentials(accessKey, secretKey));
    }

    /** Whether the broker does not let its caller ask: NO_PERMISSION is of ACL 2.0, AclException of 1.0. */
    static boolean isRefusal(Exception e) {
        return e instanceof MQBrokerException
            && (((MQBrokerException) e).getResponseCode() == NO_PERMISSION || e.getMessage().contains("AclException"));
    }

    /** What a broker did whose answer is the exception. */
    static String refusal(Exception e) {
        if (!isRefusal(e)) {
            return "does not answer";
        }
        boolean given = System.getenv("ROCKETMQ_CREDENTIALS") != null || System.getenv("ROCKETMQ_ACCESS_KEY") != null;
        return given ? "refuses the credentials of ROCKETMQ_CREDENTIALS (or ROCKETMQ_ACCESS_KEY)"
            : "refuses questions without credentials (ROCKETMQ_CREDENTIALS names their file)";
    }

    static String unquoted(String value) {
        return value == null ? null : value.trim().replaceAll("^([\"'])(.*)\\1$", "$2");
    }
}
