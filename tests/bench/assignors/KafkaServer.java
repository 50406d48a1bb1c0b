import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/**
 * The assignors of Kafka's group coordinator: {@code server-range}, {@code server-uniform}.
 *
 * <p>The range assignor gives first and last partitions; {@code server-range-listed} also reads out
 * every partition's owner.
 */
final class KafkaServer implements Assignors.Contestant {
    private final ConsumerGroupPartitionAssignor assignor;
    private final boolean lists;
    private Assignors.State state;
    private List<String> members;
    private Uuid[] topics;
    private GroupSpec group;
    private SubscribedTopicDescriber describer;

    KafkaServer(String name) {
        assignor = name.startsWith("server-range") ? new RangeAssignor() : new UniformAssignor();
        lists = name.endsWith("-listed");
    }

    @Override
    public void prepare(Assignors.State state, Assignors.State before, int[][] held) {
        this.state = state;
        members = Assignors.names("client", state.members);
        topics = new Uuid[state.topics];
        Set<Uuid> all = new HashSet<>();
        for (int topic = 0; topic < topics.length; topic++) {
            topics[topic] = new Uuid(1, topic + 1);
            all.add(topics[topic]);
        }
        Map<String, Map<Uuid, Set<Integer>>> assigned = new HashMap<>();
        Map<Uuid, Set<Integer>> taken = new HashMap<>();
        for (String member : members) {
            assigned.put(member, new HashMap<>());
        }
        if (held != null) {
            hold(before, held, assigned, taken);
        }
        group = new Group(assigned, taken, all);
        describer = new Describer(state.perTopic);
    }

    private void hold(
            Assignors.State before,
            int[][] held,
            Map<String, Map<Uuid, Set<Integer>>> assigned,
            Map<Uuid, Set<Integer>> taken) {
        List<String> holders = Assignors.names("client", before.members);
        int there = Math.min(before.perTopic, state.perTopic);
        for (int topic = 0; topic < before.topics; topic++) {
            for (int partition = 0; partition < there; partition++) {
                Map<Uuid, Set<Integer>> own = assigned.get(holders.get(held[topic][partition]));
                if (own != null) {
                    own.computeIfAbsent(topics[topic], t -> new HashSet<>()).add(partition);
                    taken.computeIfAbsent(topics[topic], t -> new HashSet<>()).add(partition);
                }
            }
        }
    }

    @Override
    public Object assign() {
        Object assigned = assignor.assign(group, describer);
        return lists ? listed(assigned) : assigned;
    }

    @Override
    public int[][] owners(Object assigned) {
        return lists ? (int[][]) assigned : listed(assigned);
    }

    private int[][] listed(Object assigned) {
        Map<String, MemberAssignment> shares = ((GroupAssignment) assigned).members();
        int[][] owners = Assignors.unowned(state);
        for (int member = 0; member < members.size(); member++) {
            MemberAssignment share = shares.get(members.get(member));
            for (int topic = 0; share != null && topic < topics.length; topic++) {
                for (int partition : share.partitions().getOrDefault(topics[topic], Set.of())) {
                    owners[topic][partition] = member;
                }
            }
        }
        return owners;
    }

    /** A group whose members subscribe the same topics. */
    private static final class Group implements GroupSpec {
        private final Map<String, Map<Uuid, Set<Integer>>> assigned;
        private final Map<Uuid, Set<Integer>> taken;
        private final MemberSubscription subscription;

        Group(
                Map<String, Map<Uuid, Set<Integer>>> assigned,
                Map<Uuid, Set<Integer>> taken,
                Set<Uuid> topics) {
            this.assigned = assigned;
            this.taken = taken;
            this.subscription = new Subscription(topics);
        }

        @Override
        public Collection<String> memberIds() {
            return assigned.keySet();
        }

        @Override
        public SubscriptionType subscriptionType() {
            return SubscriptionType.HOMOGENEOUS;
        }

        @Override
        public boolean isPartitionAssigned(Uuid topic, int partition) {
            Set<Integer> partitions = taken.get(topic);
            return partitions != null && partitions.contains(partition);
        }

        @Override
        public boolean isPartitionAssignable(Uuid topic, int partition) {
            return true;
        }

        @Override
        public MemberSubscription memberSubscription(String member) {
            return subscription;
        }

        @Override
        public MemberAssignment memberAssignment(String member) {
            // The uniform assignor wants a map that cannot change.
            Map<Uuid, Set<Integer>> own = assigned.getOrDefault(member, Map.of());
            Map<Uuid, Set<Integer>> fixed = Collections.unmodifiableMap(own);
            return () -> fixed;
        }
    }

    private static final class Subscription implements MemberSubscription {
        private final Set<Uuid> topics;

        Subscription(Set<Uuid> topics) {
            this.topics = topics;
        }

        @Override
        public Optional<String> rackId() {
            return Optional.empty();
        }

        @Override
        public Optional<String> instanceId() {
            return Optional.empty();
        }

        @Override
        public Set<Uuid> subscribedTopicIds() {
            return topics;
        }
    }

    private static final class Describer implements SubscribedTopicDescriber {
        private final int partitions;

        Describer(int partitions) {
            this.partitions = partitions;
        }

        @Override
        public int numPartitions(Uuid topic) {
            return partitions;
        }

        @Override
        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }
}
