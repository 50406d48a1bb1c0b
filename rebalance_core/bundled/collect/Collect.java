import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UnsupportedEncodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.commons.cli.Options;
import org.apache.commons.cli.PosixParser;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.protocol.body.*;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.remoting.protocol.body.*;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.command.SubCommand;
import org.apache.rocketmq.tools.command.cluster.ClusterListSubCommand;

/**
 * Asks a cluster what mqadmin would ask it for every group and topic, in one JVM with one admin client.
 *
 * <p>mqadmin starts a client for each command, which costs about a second; here a question costs the
 * milliseconds of its answer. The files are {@code <ms>-<command>[-<arguments>].txt}, with {@code .part} behind it
 * until they are whole; a refusal such as CODE: 206 is written as its stack.
 *
 * <p>Environment: NAMESRV_ADDR, and credentials as README.md says; COLLECT_EXPORT=yes where brokers keep their
 * configurations in RocksDB: they are asked to write them as JSON, last of all, and exportMetadata is written for
 * those that cannot; COLLECT_REPORT, a folder that gets {@code brokers}, the names that the name server lists, and
 * {@code failed}, a line for each failure: what, a tab, why. Arguments: output folder, cluster, threads, and
 * {@code name=host:port} of each proxy's remoting port.
 */
public final class Collect {
    static final long TIMEOUT_MS = 5_000;
    static final int PROGRESS_EVERY = 1_000;
    static final String REVIVE_TOPIC = "rmq_sys_REVIVE_LOG_"; // PopAckConstants, with the cluster's name
    static final String REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP";
    static final String EXPORT_COMMAND = "org.apache.rocketmq.tools.command.metadata.RocksDBConfigToJsonCommand";
    static final boolean EXPORT = "yes".equals(System.getenv("COLLECT_EXPORT"));
    static final String REPORT = System.getenv("COLLECT_REPORT");

    final Path output;
    final RPCHook credentials;
    final DefaultMQAdminExt admin;
    final Answers answers;
    final Map<String, Path> folders = new ConcurrentHashMap<>();
    final Set<String> taken = ConcurrentHashMap.newKeySet();
    final Map<String, String> brokers = new TreeMap<>();
    final Map<String, String> proxies = new TreeMap<>();
    final Set<String> groups = new TreeSet<>();
    final Set<String> topics = new TreeSet<>();
    final AtomicInteger files = new AtomicInteger();
    final AtomicInteger failed = new AtomicInteger();
    final AtomicInteger refused = new AtomicInteger();
    final AtomicReference<Exception> refusal = new AtomicReference<>();

    Collect(Path output, RPCHook credentials) {
        this.output = output;
        this.credentials = credentials;
        this.admin = new DefaultMQAdminExt(credentials, TIMEOUT_MS);
        this.answers = new Answers(admin);
        admin.setInstanceName("collect-" + System.nanoTime());
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 3 || System.getenv("NAMESRV_ADDR") == null) {
            System.err.println("usage: NAMESRV_ADDR=… java Collect OUTPUT CLUSTER THREADS [PROXY=HOST:PORT …]");
            System.exit(2);
        }
        int status = 1;
        Collect collect = null;
        try {
            collect = new Collect(Paths.get(args[0]), Credentials.fromEnvironment());
            collect.admin.start();
            for (String proxy : Arrays.asList(args).subList(3, args.length)) {
                int end = proxy.lastIndexOf('=');
                collect.proxies.put(proxy.substring(0, end), proxy.substring(end + 1));
            }
            collect.list(args[1]);
            collect.run(args[1], Integer.parseInt(args[2]));
            collect.nameRefused();
            status = collect.failed.get() == 0 ? 0 : 1;
            System.err.println(counted(collect.files.get(), "file") + ", " + counted(collect.failed.get(), "failure"));
        } catch (IllegalArgumentException e) { // nothing that was asked for can be collected
            System.err.println("collect: " + e.getMessage());
            status = 2;
        } catch (Throwable e) { // an Error, too, would leave the client's threads running for ever
            String why = e instanceof Error ? e.toString() : String.valueOf(e.getMessage());
            System.err.println("collect: " + why);
            if (collect != null) {
                collect.report("failed", "mqadmin\t" + oneLine(why) + "\n");
            }
        }
        // Shutting a client down waits for seconds; nothing is left to wait for.
        System.exit(status);
    }

    /** The brokers, groups and topics of the cluster. */
    void list(String cluster) throws Exception {
        ClusterInfo info = NameServer.ask(admin::examineBrokerClusterInfo);
        Set<String> names = brokersOf(cluster, info);
        report("brokers", String.join("\n", names) + "\n");
        for (String name : names) {
            // The master has id 0; without one the lowest replica answers.
            String address = new TreeMap<>(info.getBrokerAddrTable().get(name).getBrokerAddrs()).firstEntry().getValue();
            try {
                Map<String, ?> groupTable = admin.getUserSubscriptionGroup(address, TIMEOUT_MS).getSubscriptionGroupTable();
                Map<String, ?> topicTable = admin.getUserTopicConfig(address, false, TIMEOUT_MS).getTopicConfigTable();
                groups.addAll(groupTable.keySet());
                topics.addAll(topicTable.keySet());
                brokers.put(name, address);
                if (EXPORT) {
                    Map<String, Object> metadata = new TreeMap<>();
                    metadata.put("topicConfigTable", topicTable);
                    metadata.put("subscriptionGroupTable", groupTable);
                    write(free("-exportMetadata-" + fileName(name), ".json"),
                        out -> out.println(RemotingSerializable.toJson(metadata, true)));
                }
            } catch (Exception e) {
                fail(name, "at " + address + " " + Credentials.refusal(e) + " and is not asked again", e);
            }
        }
        System.err.println(counted(brokers.size(), "broker") + ", " + counted(groups.size(), "group") + ", "
            + counted(topics.size(), "topic"));
    }

    /**
     * The names of the brokers of a cluster.
     *
     * @throws IllegalArgumentException when only other clusters are known: the name is a mistake
     * @throws IOException when no broker of any cluster is known: all may be down
     */
    static Set<String> brokersOf(String cluster, ClusterInfo info) throws IOException {
        Map<String, Set<String>> clusters = info.getClusterAddrTable();
        String nameServer = "the name server " + NameServer.ADDRESSES;
        if (clusters == null || clusters.isEmpty()) {
            throw new IOException(nameServer + " knows no broker, so the cluster cannot be asked");
        }
        if (!clusters.containsKey(cluster)) {
            throw new IllegalArgumentException(
                "there is no cluster " + cluster + "; " + nameServer + " knows " + clusters.keySet());
        }
        return clusters.get(cluster);
    }

    static String counted(int count, String noun) {
        return count + " " + noun + (count == 1 ? "" : "s");
    }

    void run(String cluster, int threads) throws InterruptedException {
        write("clusterList", this::clusterList);
        write("topicList", answers::topicList);
        revive(cluster);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        groups.forEach(group -> pool.execute(() -> guarded(group, this::group)));
        topics.forEach(topic -> pool.execute(() -> guarded(topic, this::topic)));
        pool.shutdown();
        pool.awaitTermination(Long.MAX_VALUE, TimeUnit.MILLISECONDS);
        if (EXPORT) {
            brokers.forEach((name, address) -> write("rocksDBConfigToJson-" + name, out -> export(address, out)));
        }
    }

    /** RocksDBConfigToJsonCommand with {@code -b}: the broker (5.3.2 or newer) writes JSON files on its own disk. */
    void export(String address, PrintStream out) throws Exception {
        execute((SubCommand) Class.forName(EXPORT_COMMAND).getDeclaredConstructor().newInstance(), out, "-b", address);
    }

    /** A name that cannot be a file's, or an answer too large, ends its own questions and no others. */
    void guarded(String name, Consumer<String> questions) {
        try {
            questions.accept(name);
        } catch (RuntimeException | Error e) {
            fail(name, "was not asked for everything", e);
        }
    }

    void topic(String topic) {
        write("topicRoute-" + topic, out -> answers.topicRoute(topic, out));
        write("topicStatus-" + topic, out -> answers.topicStatus(topic, out));
    }

    void group(String group) {
        Map<String, String> clientIds = new TreeMap<>();
        brokers.forEach((name, address) -> write("consumerConnection-" + group + "-" + name,
            out -> answers.consumerConnection(group, address, clientIds, out)));
        Map<MessageQueue, String> owners = new TreeMap<>();
        // Brokers do not know who is behind a proxy, and gRPC clients do not answer consumerStatus.
        proxies.forEach((name, address) -> write("consumerConnection-" + group + "-" + name,
            out -> answers.consumerConnection(group, address, new TreeMap<>(), out)));
        String status = "consumerStatus-" + group;
        Map<String, Object> infos = new TreeMap<>();
        writeEach(status, clientIds.keySet(), (id, out) -> infos.put(id, answers.consumerStatus(group, id, owners, out)));
        if (!infos.isEmpty()) {
            Path folder = folders.get(status);
            write(folder.resolveSibling(folder.getFileName() + ".txt"), out ->
                answers.consumerStatusList(folder.getFileName().toString().split("-", 2)[0], clientIds, infos, out));
        }
        write("consumerProgress-s-" + group, out -> answers.consumerProgress(group, null, owners, out));
    }

    /** How far brokers of 5.x are with delivering again what was popped and not acknowledged. */
    void revive(String cluster) {
        String topic = REVIVE_TOPIC + cluster;
        try {
            admin.examineTopicRouteInfo(topic);
        } catch (Exception e) { // brokers of 4.9 have none, and where it cannot be asked for, nothing else can
            return;
        }
        write("consumerProgress-s-" + REVIVE_GROUP,
            out -> answers.consumerProgress(REVIVE_GROUP, topic, new TreeMap<>(), out));
        write("topicStatus-" + topic, out -> answers.topicStatus(topic, out));
    }

    /** ClusterListSubCommand itself: it is asked once, so a client of its own is affordable. */
    void clusterList(PrintStream out) throws Exception {
        execute(new ClusterListSubCommand(), out);
    }

    /** A command of mqadmin, with the stacks that it prints itself; nothing else may print meanwhile. */
    void execute(SubCommand command, PrintStream out, String... arguments) throws Exception {
        PrintStream console = System.out;
        PrintStream errors = System.err;
        System.setOut(out);
        System.setErr(out);
        try {
            Options options = command.buildCommandlineOptions(new Options());
            command.execute(new PosixParser().parse(options, arguments), options, credentials);
        } finally {
            System.setOut(console);
            System.setErr(errors);
        }
    }

    interface Question {
        void ask(PrintStream out) throws Exception;
    }

    void write(String command, Question question) {
        write(free("-" + fileName(command), ".txt"), question);
    }

    /** Names come from the cluster, and anybody may have chosen one. */
    static String fileName(String name) {
        return name.replace("/", "%2F");
    }

    interface ClientQuestion {
        void ask(String clientId, PrintStream out) throws Exception;
    }

    /** A file for each client; those that do not answer are asked once more, after all others. */
    void writeEach(String command, Set<String> clientIds, ClientQuestion question) {
        Map<String, Path> silent = new TreeMap<>();
        for (String id : clientIds) {
            Path file = file(command, id);
            if (!write(file, out -> question.ask(id, out), false)) {
                silent.put(id, file);
            }
        }
        silent.forEach((id, file) -> write(file, out -> question.ask(id, out), true));
    }

    /** A free path in the folder of a command; the folder is as old as the command's first file. */
    Path file(String command, String clientId) {
        String name = fileName(clientId) + ".txt";
        Path folder = folders.computeIfAbsent(command, c -> free("-" + fileName(c), ""));
        while (!take(folder.resolve(name))) {
            folder = free("-" + fileName(command), "");
        }
        return folder.resolve(name);
    }

    /** A path with the time in front that no other question has: two names may become one, as a/b and a%2Fb do. */
    Path free(String stem, String suffix) {
        for (long ms = System.currentTimeMillis(); ; ms++) {
            Path path = output.resolve(ms + stem + suffix);
            if (take(path)) {
                return path;
            }
        }
    }

    /** Whether the path was free; many file systems take paths for one that differ by case alone. */
    boolean take(Path path) {
        return taken.add(path.toString().toLowerCase(Locale.ROOT)) && !Files.exists(path);
    }

    void write(Path file, Question question) {
        write(file, question, true);
    }

    /**
     * A refused question is an answer: its stack is the file, as mqadmin's standard error would be.
     *
     * @param last false: nothing is written of a refused question, as it is asked again
     * @return whether it was answered
     */
    boolean write(Path file, Question question, boolean last) {
        if (!file.normalize().startsWith(output.normalize())) {
            fail(file.toString(), "not written", new IOException("is not in " + output));
            return true;
        }
        // In memory first: a PrintStream on a disk that is full throws nothing.
        ByteArrayOutputStream answer = new ByteArrayOutputStream();
        boolean answered = true;
        PrintStream out = utf8(answer);
        try {
            question.ask(out);
        } catch (Exception e) {
            if (last && Credentials.isRefusal(e)) {
                refused.incrementAndGet();
                refusal.compareAndSet(null, e);
            }
            answered = false;
            e.printStackTrace(out);
        }
        out.flush();
        if (!answered && !last) {
            return false;
        }
        Path part = file.resolveSibling(file.getFileName() + ".part");
        try {
            Files.createDirectories(file.getParent());
            Files.write(part, answer.toByteArray(), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
            Files.move(part, file);
        } catch (IOException e) {
            fail("mqadmin/" + output.relativize(file), "was not written whole", e);
            return answered;
        }
        if (files.incrementAndGet() % PROGRESS_EVERY == 0) {
            System.err.printf("%d files%n", files.get());
        }
        return answered;
    }

    /** Answers that lack for want of a right would pass for what is not there. */
    void nameRefused() {
        Exception first = refusal.get();
        if (first != null) {
            fail("mqadmin", refused.get() + " questions: a broker " + Credentials.refusal(first)
                + "; README.md lists the rights that are needed", first);
        }
    }

    static PrintStream utf8(ByteArrayOutputStream bytes) {
        try {
            return new PrintStream(bytes, false, "UTF-8");
        } catch (UnsupportedEncodingException e) {
            throw new IllegalStateException(e); // every Java has it
        }
    }

    void fail(String what, String why, Throwable e) {
        failed.incrementAndGet();
        String reason = oneLine(e.toString());
        System.err.println("collect: " + what + " " + why + ": " + reason);
        report("failed", what + "\t" + why + ": " + reason + "\n");
    }

    /** A message in one line, without the last of RocketMQ's own, which is a link to its FAQ. */
    static String oneLine(String message) {
        return message.split("[\r\n]+For more information", 2)[0].replaceAll("[\r\n]+", " ");
    }

    /** Adds to a file for collect.sh; without it the exit code alone says that something failed. */
    synchronized void report(String name, String text) {
        if (REPORT == null) {
            return;
        }
        try {
            Files.write(Paths.get(REPORT, name), text.getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE,
                StandardOpenOption.APPEND);
        } catch (IOException e) {
            failed.incrementAndGet();
            System.err.println("collect: " + e);
        }
    }
}
