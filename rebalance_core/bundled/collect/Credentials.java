import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.remoting.RPCHook;

/** Access and secret key: from the environment or from a file that it names, never from the command line. */
final class Credentials {
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
            try (var reader = Files.newBufferedReader(Path.of(file))) {
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

    static String unquoted(String value) {
        return value == null ? null : value.trim().replaceAll("^([\"'])(.*)\\1$", "$2");
    }
}
