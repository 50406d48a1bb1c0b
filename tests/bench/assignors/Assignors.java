import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;

/**
 * Times one assignor (named by the first argument) on points read from stdin; one line of result
 * for each on stdout. The other arguments: the cap, and after how long a point is not run again; in
 * seconds.
 *
 * <p>A line is {@code id TAB topics TAB members TAB queues TAB members TAB queues}: first those
 * before the change, then those after. Members are numbers as {@code 0-9,12}; queues are the number
 * on each broker, of every topic, as {@code 25,25,25,25}. No members before ({@code -}): nothing
 * was assigned.
 *
 * <p>A result is {@code id TAB seconds TAB runs TAB moves TAB most TAB fewest TAB crc}: processor
 * seconds of the fastest run, which computes both states; moves among queues that were held before;
 * queues of the members with most and fewest; CRC-32 of the owners as numbers of members, by topic,
 * broker and queue id. A point that takes longer than the cap ends the process: {@code id TAB
 * capped}.
 */
public final class Assignors {
    /** One state of a group; queues of all topics alike. */
    static final class State {
        final int topics;
        final int[] members;
        final int[] perBroker;
        final int perTopic;

        State(String topics, String members, String perBroker) {
            this.topics = Integer.parseInt(topics);
            this.members = numbers(members);
            String[] numbers = perBroker.split(",");
            this.perBroker = Arrays.stream(numbers).mapToInt(Integer::parseInt).toArray();
            this.perTopic = Arrays.stream(this.perBroker).sum();
        }
    }

    /** An assignor with everything it is given ready in memory. */
    interface Contestant {
        /** Takes the state and what {@code owners} gave for the one before it (null: nothing). */
        void prepare(State state, State before, int[][] held);

        /** The work that is timed. */
        Object assign();

        /** The owners that {@code assign} returned, by topic and queue: places in members. */
        int[][] owners(Object assigned);
    }

    /** The owner of a queue that the cooperative protocol takes away now and gives away next. */
    static final int NOBODY = -1;

    private static final long LOOK_MILLISECONDS = 100;

    public static void main(String[] arguments) throws Exception {
        double cap = Double.parseDouble(arguments[1]);
        double enough = Double.parseDouble(arguments[2]);
        BufferedReader points = new BufferedReader(new InputStreamReader(System.in));
        for (String line = points.readLine(); line != null; line = points.readLine()) {
            String[] field = line.split("\t");
            Thread timer = capped(field[0], cap);
            System.out.println(field[0] + "\t" + measured(arguments[0], field, enough));
            timer.interrupt();
        }
    }

    private static Contestant contestant(String name) throws Exception {
        // By name: the jars of the others need not be there.
        String kafka = name.startsWith("server") ? "KafkaServer" : "KafkaClient";
        Class<?> kind = Class.forName(name.startsWith("rocketmq") ? "RocketMQ" : kafka);
        return (Contestant) kind.getDeclaredConstructor(String.class).newInstance(name);
    }

    private static String measured(String name, String[] field, double enough) throws Exception {
        State before = field[2].equals("-") ? null : new State(field[1], field[2], field[3]);
        State after = new State(field[1], field[4], field[5]);
        long thread = Thread.currentThread().getId();
        Contestant first = contestant(name);
        Contestant second = contestant(name);
        int[][] held = null;
        if (before != null) {
            first.prepare(before, null, null);
            held = first.owners(first.assign());
        }
        second.prepare(after, before, held);
        double best = Double.MAX_VALUE;
        double spent = 0;
        int runs = 0;
        Object assigned = null;
        while (runs == 0 || spent < enough) {
            double begin = seconds(thread);
            if (before != null) {
                first.assign();
            }
            assigned = second.assign();
            double seconds = seconds(thread) - begin;
            best = Math.min(best, seconds);
            spent += seconds;
            runs++;
        }
        return best + "\t" + runs + "\t" + facts(second.owners(assigned), after, held, before);
    }

    private static String facts(int[][] owners, State after, int[][] held, State before) {
        CRC32 crc = new CRC32();
        ByteBuffer bytes = ByteBuffer.allocate(4 * after.perTopic);
        long[] queues = new long[after.members.length];
        long moves = 0;
        for (int topic = 0; topic < after.topics; topic++) {
            bytes.clear();
            for (int queue = 0; queue < after.perTopic; queue++) {
                int owner = owners[topic][queue];
                if (owner >= 0) {
                    queues[owner]++;
                }
                bytes.putInt(owner >= 0 ? after.members[owner] : NOBODY);
            }
            crc.update(bytes.array());
            if (held != null) {
                moves += moved(owners[topic], after, held[topic], before);
            }
        }
        long most = Arrays.stream(queues).max().getAsLong();
        long fewest = Arrays.stream(queues).min().getAsLong();
        return moves + "\t" + most + "\t" + fewest + "\t" + crc.getValue();
    }

    /** Queues of one topic that are there before and after, with other owners. */
    private static long moved(int[] owners, State after, int[] held, State before) {
        long moves = 0;
        int first = 0;
        int firstBefore = 0;
        for (int broker = 0; broker < before.perBroker.length; broker++) {
            int now = broker < after.perBroker.length ? after.perBroker[broker] : 0;
            for (int queue = 0; queue < Math.min(now, before.perBroker[broker]); queue++) {
                int was = held[firstBefore + queue];
                int is = owners[first + queue];
                boolean stays = is >= 0 && was >= 0 && before.members[was] == after.members[is];
                moves += was >= 0 && !stays ? 1 : 0;
            }
            first += now;
            firstBefore += before.perBroker[broker];
        }
        return moves;
    }

    /** Ends this process when this thread has spent more processor time on a point than the cap. */
    private static Thread capped(String id, double cap) {
        long worker = Thread.currentThread().getId();
        double end = seconds(worker) + cap;
        Thread timer = new Thread(() -> {
            try {
                while (seconds(worker) < end) {
                    Thread.sleep(LOOK_MILLISECONDS);
                }
                System.out.println(id + "\tcapped");
                System.out.flush();
                Runtime.getRuntime().halt(0);
            } catch (InterruptedException done) {
                // in time
            }
        });
        timer.setDaemon(true);
        timer.start();
        return timer;
    }

    /** Processor seconds of a thread; what else runs, the collector too, is not counted. */
    private static double seconds(long thread) {
        return ManagementFactory.getThreadMXBean().getThreadCpuTime(thread) / 1e9;
    }

    /** Names that sort like their numbers. */
    static String name(String kind, int number) {
        return String.format("%s-%05d", kind, number);
    }

    static int[][] unowned(State state) {
        int[][] owners = new int[state.topics][state.perTopic];
        for (int[] topic : owners) {
            Arrays.fill(topic, NOBODY);
        }
        return owners;
    }

    static Map<String, Integer> places(List<String> names) {
        Map<String, Integer> places = new HashMap<>();
        for (String name : names) {
            places.put(name, places.size());
        }
        return places;
    }

    static List<String> names(String kind, int[] numbers) {
        List<String> names = new ArrayList<>();
        for (int number : numbers) {
            names.add(name(kind, number));
        }
        return names;
    }

    private static int[] numbers(String ranges) {
        List<Integer> found = new ArrayList<>();
        for (String range : ranges.split(",")) {
            String[] ends = range.split("-");
            int last = Integer.parseInt(ends[ends.length - 1]);
            for (int number = Integer.parseInt(ends[0]); number <= last; number++) {
                found.add(number);
            }
        }
        return found.stream().mapToInt(Integer::intValue).toArray();
    }
}
