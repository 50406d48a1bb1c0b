import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.admin.*;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.protocol.body.*;
import org.apache.rocketmq.common.protocol.heartbeat.*;
import org.apache.rocketmq.remoting.protocol.admin.*;
import org.apache.rocketmq.remoting.protocol.body.*;
import org.apache.rocketmq.remoting.protocol.heartbeat.*;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Questions to the cluster, their answers printed as mqadmin 4.9 prints them: its columns and words, but names
 * are not cut where they do not fit.
 *
 * <p>Packages are imported whole where 4.9 and 5.0 keep a class in another than later versions do.
 */
final class Answers {
    final DefaultMQAdminExt admin;

    Answers(DefaultMQAdminExt admin) {
        this.admin = admin;
    }

    /** TopicListSubCommand. */
    void topicList(PrintStream out) throws Exception {
        admin.fetchAllTopicList().getTopicList().forEach(out::println);
    }

    /** TopicRouteSubCommand. */
    void topicRoute(String topic, PrintStream out) throws Exception {
        out.println(admin.examineTopicRouteInfo(topic).toJson(true));
    }

    /** ConsumerConnectionSubCommand with {@code -b}; adds ids and versions of the members to {@code clientIds}. */
    void consumerConnection(String group, String address, Map<String, String> clientIds, PrintStream out)
        throws Exception {
        ConsumerConnection connections = admin.examineConsumerConnectionInfo(group, address);
        String row = "%-36s %-22s %-10s %s%n";
        out.printf(row, "#ClientId", "#ClientAddr", "#Language", "#Version");
        for (Connection member : connections.getConnectionSet()) {
            String version = MQVersion.getVersionDesc(member.getVersion());
            clientIds.put(member.getClientId(), version);
            out.printf(row, member.getClientId(), member.getClientAddr(), member.getLanguage(), version);
        }
        out.printf("%nBelow is subscription:%n%-20s %s%n", "#Topic", "#SubExpression");
        for (SubscriptionData subscription : connections.getSubscriptionTable().values()) {
            out.printf("%-20s %s%n", subscription.getTopic(), subscription.getSubString());
        }
        out.printf("%nConsumeType: %s%nMessageModel: %s%nConsumeFromWhere: %s%n", connections.getConsumeType(),
            connections.getMessageModel(), connections.getConsumeFromWhere());
    }

    /**
     * The file that ConsumerStatusSubCommand writes for one client; adds its queues to {@code owners}.
     *
     * @return what the client answered, a ConsumerRunningInfo
     */
    Object consumerStatus(String group, String clientId, Map<MessageQueue, String> owners, PrintStream out)
        throws Exception {
        ConsumerRunningInfo info = admin.getConsumerRunningInfo(group, clientId, false);
        for (MessageQueue queue : info.getMqTable().keySet()) {
            owners.put(queue, clientId.split("@")[0]);
        }
        out.print(info.formatString());
        return info;
    }

    /**
     * What ConsumerStatusSubCommand prints: the clients that answered, whether they subscribe alike, and the queues
     * that it warns of ("maybe blocked"). It warns only where they subscribe alike; here the warnings stand in any case.
     *
     * @param ms       the name of the folder of the clients' files, before the command
     * @param versions of all clients by id
     * @param infos    a ConsumerRunningInfo by id
     */
    void consumerStatusList(String ms, Map<String, String> versions, Map<String, Object> infos, PrintStream out)
        throws Exception {
        String row = "%-10s %-40s %-20s %s%n";
        out.printf(row, "#Index", "#ClientId", "#Version", "#ConsumerRunningInfoFile");
        int index = 0;
        StringBuilder warnings = new StringBuilder();
        for (Map.Entry<String, Object> entry : infos.entrySet()) {
            String clientId = entry.getKey();
            out.printf(row, ++index, clientId, versions.get(clientId), ms + "/" + clientId);
            warnings.append(analyze("analyzeProcessQueue", entry.getValue(), clientId, entry.getValue()));
        }
        Object any = infos.values().iterator().next();
        Object same = analyze("analyzeSubscription", any, infos);
        if (Boolean.TRUE.equals(same)) {
            out.printf("%n%nSame subscription in the same group of consumer%n");
            out.printf("%nRebalance %s%n", Boolean.TRUE.equals(analyze("analyzeRebalance", any, infos)) ? "OK" : "Failed");
        } else if (Boolean.FALSE.equals(same)) {
            out.printf("%n%nWARN: Different subscription in the same group of consumer!!!%n");
        }
        out.print(warnings);
    }

    /** A static method of ConsumerRunningInfo, which is in another package in 4.9; empty if it cannot read the answers. */
    private static Object analyze(String method, Object info, Object... arguments) throws Exception {
        Method found = Arrays.stream(info.getClass().getMethods()).filter(one -> one.getName().equals(method))
            .findFirst().get();
        try {
            return found.invoke(null, arguments);
        } catch (InvocationTargetException e) { // of clients in other languages, which leave properties out
            return "";
        }
    }

    /**
     * ConsumerProgressSubCommand with {@code -s true}.
     *
     * @param topic of which alone; null: all of the group's
     */
    void consumerProgress(String group, String topic, Map<MessageQueue, String> owners, PrintStream out)
        throws Exception {
        ConsumeStats stats = admin.examineConsumeStats(group, topic);
        String row = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s  %s%n";
        out.printf(row, "#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Client IP",
            "#Diff", "#LastTime");
        for (Map.Entry<MessageQueue, OffsetWrapper> entry : new TreeMap<>(stats.getOffsetTable()).entrySet()) {
            MessageQueue queue = entry.getKey();
            OffsetWrapper offsets = entry.getValue();
            long last = offsets.getLastTimestamp();
            out.printf(row, queue.getTopic(), queue.getBrokerName(), queue.getQueueId(), offsets.getBrokerOffset(),
                offsets.getConsumerOffset(), owners.getOrDefault(queue, "N/A"),
                offsets.getBrokerOffset() - offsets.getConsumerOffset(),
                last == 0 ? "N/A" : String.format("%1$tF %1$tT", last));
        }
        out.printf("%nConsume TPS: %.2f%nDiff Total: %d%n", stats.getConsumeTps(), stats.computeTotalDiff());
    }

    /** TopicStatusSubCommand. */
    void topicStatus(String topic, PrintStream out) throws Exception {
        String row = "%-32s  %-4s  %-20s  %-20s    %s%n";
        Map<MessageQueue, TopicOffset> table = new TreeMap<>(admin.examineTopicStats(topic).getOffsetTable());
        out.printf(row, "#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated");
        for (Map.Entry<MessageQueue, TopicOffset> entry : table.entrySet()) {
            long updated = entry.getValue().getLastUpdateTimestamp();
            out.printf(row, entry.getKey().getBrokerName(), entry.getKey().getQueueId(),
                entry.getValue().getMinOffset(), entry.getValue().getMaxOffset(),
                updated > 0 ? String.format("%1$tF %1$tT,%1$tL", updated) : "");
        }
    }
}
