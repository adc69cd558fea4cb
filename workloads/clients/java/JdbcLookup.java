import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/**
 * loadprint-jdbc-lookup prepares, executes and closes a point select on sbtest tables through MySQL
 * Connector/J, a connection per thread. Its two options are those of the driver that decide what a
 * prepared statement costs: --server-prepared (useServerPrepStmts) and --cached (cachePrepStmts).
 * It prints a line per second and one line of JSON at the end.
 */
public final class JdbcLookup {
    private static final long SECOND_NS = 1_000_000_000L;

    private final Map<String, String> flags = new HashMap<>();
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private volatile boolean running = true;
    private AtomicLong[] counters;

    public static void main(String[] arguments) {
        try {
            new JdbcLookup(arguments).run();
        } catch (Exception error) {
            System.err.println("loadprint-jdbc-lookup: " + String.valueOf(error.getMessage()).split("\n")[0]);
            System.exit(2);
        }
        System.exit(0);
    }

    private JdbcLookup(String[] arguments) {
        for (String argument : arguments) {
            String[] parts = argument.replaceFirst("^--", "").split("=", 2);
            if (!argument.startsWith("--") || !parts[0].matches("tables|table-size|server-prepared|cached")) {
                throw new IllegalArgumentException(
                        "unexpected argument `" + argument + "`: give --tables=N --table-size=N [--server-prepared] [--cached]");
            }
            flags.put(parts[0], parts.length == 2 ? parts[1] : "true");
        }
    }

    private void run() throws Exception {
        int threads = (int) number("LOADPRINT_THREADS", 1);
        int warmup = (int) number("LOADPRINT_WARMUP_SECONDS", 0);
        int seconds = (int) number("LOADPRINT_SECONDS", 10);
        double rate = number("LOADPRINT_RATE", 0);
        Map<String, String> account = account();
        counters = new AtomicLong[threads];
        Connection[] connections = new Connection[threads];
        for (int thread = 0; thread < threads; thread++) {
            counters[thread] = new AtomicLong();
            connections[thread] = connect(account);
        }
        for (int thread = 0; thread < threads; thread++) {
            int number = thread;
            Thread worker = new Thread(() -> lookUp(connections[number], number, rate / threads), "lookup-" + number);
            worker.setDaemon(true);
            worker.start();
        }
        long[] counted = measure(warmup, seconds);
        running = false;
        if (failure.get() != null) {
            throw failure.get();
        }
        System.out.printf(java.util.Locale.ROOT, "{\"operations\": %d, \"seconds\": %.6f, \"threads\": %d, \"driver\": \"%s\"}%n",
                counted[0], counted[1] / 1e9, threads, connections[0].getMetaData().getDriverVersion().split(" ")[0]);
    }

    /** Prepares, executes and closes a statement, as an application does that leaves caching to the driver. */
    private void lookUp(Connection connection, int number, double rate) {
        SplittableRandom random = new SplittableRandom(1 + number);
        int tables = flag("tables", 1);
        int rows = flag("table-size", 10000);
        long due = System.nanoTime();
        try {
            while (running) {
                if (rate > 0) {
                    due += (long) (SECOND_NS / rate);
                    for (long left; (left = due - System.nanoTime()) > 0 && running; ) {
                        LockSupport.parkNanos(left);
                    }
                }
                String text = "SELECT c FROM sbtest" + random.nextInt(1, tables + 1) + " WHERE id=?";
                try (PreparedStatement statement = connection.prepareStatement(text)) {
                    statement.setInt(1, random.nextInt(1, rows + 1));
                    try (ResultSet result = statement.executeQuery()) {
                        if (!result.next()) {
                            throw new SQLException("a row is missing: prepare the tables with these options");
                        }
                        result.getString(1);
                    }
                }
                counters[number].incrementAndGet();
            }
        } catch (SQLException error) {
            failure.compareAndSet(null, error);
        }
    }

    /** Prints a line per second; returns the lookups and the nanoseconds after the warm-up. */
    private long[] measure(int warmup, int seconds) throws InterruptedException {
        long start = System.nanoTime();
        long begin = start;
        long counted = total();
        long last = counted;
        if (warmup == 0) {
            System.out.println("measure begins");
        }
        for (int second = 1; second <= warmup + seconds && failure.get() == null; second++) {
            long left = start + second * SECOND_NS - System.nanoTime();
            Thread.sleep(Math.max(0, left / 1_000_000), (int) Math.max(0, left % 1_000_000));
            long now = total();
            if (second <= warmup) {
                System.out.println("[ " + second + "s ] warm-up");
            } else {
                System.out.println("[ " + second + "s ] lookups: " + (now - last));
            }
            last = now;
            if (second == warmup) {
                begin = System.nanoTime();
                counted = now;
                System.out.println("measure begins");
            }
        }
        long length = System.nanoTime() - begin;
        System.out.println("measure ends");
        return new long[] {last - counted, length};
    }

    private long total() {
        long sum = 0;
        for (AtomicLong counter : counters) {
            sum += counter.get();
        }
        return sum;
    }

    private Connection connect(Map<String, String> account) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", account.getOrDefault("user", ""));
        properties.setProperty("password", account.getOrDefault("password", ""));
        // Without TLS, as the other clients over a private network, unless the account selects it.
        properties.setProperty("sslMode", account.getOrDefault("ssl-mode", "DISABLED"));
        // Without TLS the password is sent only under a key that is trusted.
        boolean loopback = account.getOrDefault("host", "127.0.0.1").matches("localhost|127(\\.\\d+){3}|::1");
        String permission = account.getOrDefault("get-server-public-key", loopback ? "1" : "0");
        properties.setProperty("allowPublicKeyRetrieval", String.valueOf(permission.matches("1|on|true|")));
        if (account.containsKey("server-public-key-path")) {
            properties.setProperty("serverRSAPublicKeyFile", account.get("server-public-key-path"));
        }
        properties.setProperty("useServerPrepStmts", flags.getOrDefault("server-prepared", "false"));
        properties.setProperty("cachePrepStmts", flags.getOrDefault("cached", "false"));
        String database = System.getenv().getOrDefault("LOADPRINT_DATABASE", "sbtest");
        String place = account.getOrDefault("host", "127.0.0.1") + ":" + account.getOrDefault("port", "3306");
        return DriverManager.getConnection("jdbc:mysql://" + place + "/" + database, properties);
    }

    /** Reads group [client] of the option file; its values are quoted, with \\ and \" escaped. */
    private static Map<String, String> account() throws IOException {
        Map<String, String> settings = new HashMap<>();
        String file = System.getenv("LOADPRINT_DEFAULTS_FILE");
        for (String line : file == null ? new String[0] : Files.readString(Path.of(file)).split("\n")) {
            String[] parts = line.split("=", 2);
            if (parts.length == 2) {
                String value = parts[1].strip();
                boolean quoted = value.length() > 1 && value.startsWith("\"") && value.endsWith("\"");
                value = quoted ? value.substring(1, value.length() - 1).replaceAll("\\\\(.)", "$1") : value;
                settings.put(parts[0].strip().replaceFirst("^loose-", ""), value);
            }
        }
        if (settings.containsKey("socket")) {
            throw new IOException("Connector/J has no unix sockets: connect by TCP (placement.connection: veth)");
        }
        // It verifies certificates with a key store, and with PREFERRED sends the password to any server that has TLS.
        String mode = settings.getOrDefault("ssl-mode", "DISABLED").toUpperCase();
        if (!mode.equals("DISABLED") && !mode.equals("REQUIRED")) {
            throw new IOException("ssl-mode=" + mode + " is not supported with Connector/J: use DISABLED or REQUIRED, or another client");
        }
        return settings;
    }

    private int flag(String name, int other) {
        return Integer.parseInt(flags.getOrDefault(name, String.valueOf(other)));
    }

    private static double number(String name, double other) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? other : Double.parseDouble(value);
    }
}
