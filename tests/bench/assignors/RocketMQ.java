import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * What all members of a group compute at one rebalance: each asks the strategy, topic by topic.
 *
 * <p>{@code rocketmq-allocate} calls the strategy alone, with sorted lists; {@code
 * rocketmq-rebalance} also copies and sorts both lists first, as RebalanceImpl.rebalanceByTopic
 * does.
 */
final class RocketMQ implements Assignors.Contestant {
    private final AllocateMessageQueueStrategy strategy = new AllocateMessageQueueAveragely();
    private final boolean sorts;
    private Assignors.State state;
    private List<String> members;
    private List<List<MessageQueue>> queues;
    private List<Set<MessageQueue>> queueSets;

    RocketMQ(String name) {
        sorts = name.equals("rocketmq-rebalance");
    }

    @Override
    public void prepare(Assignors.State state, Assignors.State before, int[][] held) {
        this.state = state;
        members = Assignors.names("client", state.members);
        queues = new ArrayList<>();
        queueSets = new ArrayList<>();
        for (int topic = 0; topic < state.topics; topic++) {
            List<MessageQueue> of = new ArrayList<>();
            String name = Assignors.name("topic", topic);
            for (int broker = 0; broker < state.perBroker.length; broker++) {
                for (int queue = 0; queue < state.perBroker[broker]; queue++) {
                    of.add(new MessageQueue(name, Assignors.name("broker", broker), queue));
                }
            }
            queues.add(of);
            queueSets.add(sorts ? new HashSet<>(of) : Set.of());
        }
    }

    @Override
    public Object assign() {
        List<List<List<MessageQueue>>> shares = new ArrayList<>();
        for (String member : members) {
            List<List<MessageQueue>> own = new ArrayList<>();
            for (int topic = 0; topic < queues.size(); topic++) {
                List<MessageQueue> all = queues.get(topic);
                List<String> ids = members;
                if (sorts) {
                    all = new ArrayList<>(queueSets.get(topic));
                    ids = new ArrayList<>(members);
                    Collections.sort(all);
                    Collections.sort(ids);
                }
                own.add(strategy.allocate("group", member, all, ids));
            }
            shares.add(own);
        }
        return shares;
    }

    @Override
    @SuppressWarnings("unchecked")
    public int[][] owners(Object assigned) {
        List<List<List<MessageQueue>>> shares = (List<List<List<MessageQueue>>>) assigned;
        int[][] owners = Assignors.unowned(state);
        for (int topic = 0; topic < state.topics; topic++) {
            Map<MessageQueue, Integer> places = new HashMap<>();
            for (MessageQueue queue : queues.get(topic)) {
                places.put(queue, places.size());
            }
            for (int member = 0; member < shares.size(); member++) {
                for (MessageQueue queue : shares.get(member).get(topic)) {
                    owners[topic][places.get(queue)] = member;
                }
            }
        }
        return owners;
    }
}
