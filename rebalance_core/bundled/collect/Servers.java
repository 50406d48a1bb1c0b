import java.net.InetAddress;
import java.net.NetworkInterface;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.rocketmq.common.protocol.body.*;
import org.apache.rocketmq.remoting.protocol.body.*;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Writes the servers that the name servers of NAMESRV_ADDR know, a line each, tabs between: kind, cluster, name,
 * host (empty: this machine), and the folder that a broker or name server states of itself, empty if it does not.
 *
 * <p>A broker states the root of its store, a name server the file of its key-value configuration. Proxies are the
 * members of the group in which they exchange what they know. Argument: the file to write.
 */
public final class Servers {
    static final String PROXIES = "CID_DefaultHeartBeatSyncerTopic";

    final DefaultMQAdminExt admin;
    final Set<String> nameServers = new LinkedHashSet<>(Arrays.asList(NameServer.ADDRESSES.split("[;,]")));
    final Map<String, String> proxies = new TreeMap<>();
    final List<String> rows = new ArrayList<>();

    Servers(DefaultMQAdminExt admin) {
        this.admin = admin;
    }

    public static void main(String[] args) {
        int status = 1;
        try {
            DefaultMQAdminExt admin = new DefaultMQAdminExt(Credentials.fromEnvironment(), Collect.TIMEOUT_MS);
            admin.setInstanceName("collect-" + System.nanoTime());
            admin.start();
            Servers servers = new Servers(admin);
            servers.list();
            Files.write(Paths.get(args[0]), servers.rows);
            status = 0;
        } catch (Exception | Error e) {
            System.err.println("collect: " + e.getMessage());
        }
        System.exit(status);
    }

    void list() throws Exception {
        ClusterInfo info = NameServer.ask(admin::examineBrokerClusterInfo);
        for (Map.Entry<String, Set<String>> cluster : new TreeMap<>(info.getClusterAddrTable()).entrySet()) {
            for (String name : new TreeSet<>(cluster.getValue())) {
                Map<Long, String> addresses = new TreeMap<>(info.getBrokerAddrTable().get(name).getBrokerAddrs());
                for (Map.Entry<Long, String> entry : addresses.entrySet()) {
                    String suffix = entry.getKey() == 0 ? "" : "-" + entry.getKey();
                    row("broker", cluster.getKey(), name + suffix, host(entry.getValue()), store(entry.getValue()));
                    proxiesAt(cluster.getKey(), entry.getValue());
                }
            }
        }
        proxies.forEach((host, cluster) -> row("proxy", cluster, "proxy-" + host, host, ""));
        for (String address : nameServers) {
            row("namesrv", "", "namesrv-" + address.replace(':', '-'), host(address), configuration(address));
        }
    }

    /** The root of a broker's store; the name servers that it registers with are known from then on. */
    String store(String address) {
        try {
            Properties settings = admin.getBrokerConfig(address);
            for (String one : settings.getProperty("namesrvAddr", "").split("[;,]")) {
                if (!one.trim().isEmpty()) {
                    nameServers.add(one.trim());
                }
            }
            return settings.getProperty("storePathRootDir", "");
        } catch (Exception e) {
            System.err.println("collect: the broker at " + address + " " + Credentials.refusal(e) + ": " + e);
            return "";
        }
    }

    void proxiesAt(String cluster, String address) {
        try {
            for (Connection member : admin.examineConsumerConnectionInfo(PROXIES, address).getConnectionSet()) {
                proxies.putIfAbsent(host(member.getClientAddr()), cluster);
            }
        } catch (Exception e) {
            // CODE: 206 of a broker without proxies
        }
    }

    String configuration(String address) {
        try {
            Properties settings = admin.getNameServerConfig(new ArrayList<>(Arrays.asList(address))).get(address);
            return settings == null ? "" : settings.getProperty("kvConfigPath", "");
        } catch (Exception e) {
            System.err.println("collect: the name server at " + address + " " + Credentials.refusal(e) + ": " + e);
            return "";
        }
    }

    static String host(String address) {
        String host = address.substring(0, address.lastIndexOf(':'));
        try {
            return NetworkInterface.getByInetAddress(InetAddress.getByName(host)) == null ? host : "";
        } catch (Exception e) {
            return host;
        }
    }

    void row(String... cells) {
        rows.add(Arrays.stream(cells).map(cell -> cell.replaceAll("[\t\r\n]", " ")).collect(Collectors.joining("\t")));
    }
}
