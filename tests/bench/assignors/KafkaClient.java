import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;

/** The assignors of Kafka's clients: {@code client-range}, {@code client-sticky}. */
final class KafkaClient implements Assignors.Contestant {
    private static final int GENERATION = 1;

    private final AbstractPartitionAssignor assignor;
    private Assignors.State state;
    private List<String> members;
    private List<String> topics;
    private Map<String, Integer> partitions;
    private Map<String, Subscription> subscriptions;

    KafkaClient(String name) {
        boolean ranges = name.equals("client-range");
        assignor = ranges ? new RangeAssignor() : new CooperativeStickyAssignor();
    }

    @Override
    public void prepare(Assignors.State state, Assignors.State before, int[][] held) {
        this.state = state;
        members = Assignors.names("client", state.members);
        topics = new ArrayList<>();
        partitions = new HashMap<>();
        for (int topic = 0; topic < state.topics; topic++) {
            topics.add(Assignors.name("topic", topic));
            partitions.put(topics.get(topic), state.perTopic);
        }
        Map<String, List<TopicPartition>> owned = new HashMap<>();
        int[] numbers = before == null ? new int[0] : before.members;
        List<String> holders = Assignors.names("client", numbers);
        int there = before == null ? 0 : Math.min(before.perTopic, state.perTopic);
        for (int topic = 0; held != null && topic < before.topics; topic++) {
            for (int partition = 0; partition < there; partition++) {
                if (held[topic][partition] < 0) {
                    continue;
                }
                owned.computeIfAbsent(holders.get(held[topic][partition]), m -> new ArrayList<>())
                        .add(new TopicPartition(topics.get(topic), partition));
            }
        }
        subscriptions = new HashMap<>();
        for (String member : members) {
            List<TopicPartition> own = owned.getOrDefault(member, List.of());
            subscriptions.put(
                    member, new Subscription(topics, null, own, GENERATION, Optional.empty()));
        }
    }

    @Override
    public Object assign() {
        return assignor.assign(partitions, subscriptions);
    }

    @Override
    @SuppressWarnings("unchecked")
    public int[][] owners(Object assigned) {
        Map<String, List<TopicPartition>> shares = (Map<String, List<TopicPartition>>) assigned;
        Map<String, Integer> places = Assignors.places(topics);
        int[][] owners = Assignors.unowned(state);
        for (int member = 0; member < members.size(); member++) {
            for (TopicPartition partition : shares.get(members.get(member))) {
                owners[places.get(partition.topic())][partition.partition()] = member;
            }
        }
        return owners;
    }
}
