import java.io.PrintStream;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Questions to the cluster, their answers printed as mqadmin 4.9 prints them: its columns and words, but names
 * are not cut where they do not fit.
 *
 * <p>{@code var} stands where 4.9 and 5.x keep the same class in different packages.
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

    /** ConsumerConnectionSubCommand with {@code -b}; adds the ids of the members to {@code clientIds}. */
    void consumerConnection(String group, String address, Set<String> clientIds, PrintStream out) throws Exception {
        var connections = admin.examineConsumerConnectionInfo(group, address);
        String row = "%-36s %-22s %-10s %s%n";
        out.printf(row, "#ClientId", "#ClientAddr", "#Language", "#Version");
        for (var member : connections.getConnectionSet()) {
            clientIds.add(member.getClientId());
            out.printf(row, member.getClientId(), member.getClientAddr(), member.getLanguage(),
                MQVersion.getVersionDesc(member.getVersion()));
        }
        out.printf("%nBelow is subscription:%n%-20s %s%n", "#Topic", "#SubExpression");
        for (var subscription : connections.getSubscriptionTable().values()) {
            out.printf("%-20s %s%n", subscription.getTopic(), subscription.getSubString());
        }
        out.printf("%nConsumeType: %s%nMessageModel: %s%nConsumeFromWhere: %s%n", connections.getConsumeType(),
            connections.getMessageModel(), connections.getConsumeFromWhere());
    }

    /** The file that ConsumerStatusSubCommand writes for one client; adds its queues to {@code owners}. */
    void consumerStatus(String group, String clientId, Map<MessageQueue, String> owners, PrintStream out)
        throws Exception {
        var info = admin.getConsumerRunningInfo(group, clientId, false);
        for (MessageQueue queue : info.getMqTable().keySet()) {
            owners.put(queue, clientId.split("@")[0]);
        }
        out.print(info.formatString());
    }

    /** ConsumerProgressSubCommand with {@code -s true}. */
    void consumerProgress(String group, Map<MessageQueue, String> owners, PrintStream out) throws Exception {
        var stats = admin.examineConsumeStats(group);
        String row = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s  %s%n";
        out.printf(row, "#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset", "#Client IP",
            "#Diff", "#LastTime");
        for (var entry : new TreeMap<>(stats.getOffsetTable()).entrySet()) {
            MessageQueue queue = entry.getKey();
            var offsets = entry.getValue();
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
        var table = new TreeMap<>(admin.examineTopicStats(topic).getOffsetTable());
        out.printf(row, "#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated");
        for (var entry : table.entrySet()) {
            long updated = entry.getValue().getLastUpdateTimestamp();
            out.printf(row, entry.getKey().getBrokerName(), entry.getKey().getQueueId(),
                entry.getValue().getMinOffset(), entry.getValue().getMaxOffset(),
                updated > 0 ? String.format("%1$tF %1$tT,%1$tL", updated) : "");
        }
    }
}
