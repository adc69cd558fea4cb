package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// options are the settings of a run, from flags and from the environment that `loadprint-load`
// sets. A flag has precedence.
type options struct {
	config         *mysql.Config
	threads        int
	tables         int
	tableSize      int
	warmup         int
	seconds        int
	newConnections bool
	maxIdle        int
	concatenate    bool
}

// parse reads flags and the option file. There is no flag for the password, which every user of
// the host could read.
func parse(arguments []string) (options, error) {
	var parsed options
	flags := flag.NewFlagSet("loadprint-go-lookup", flag.ContinueOnError)
	file := flags.String("defaults-file", os.Getenv("LOADPRINT_DEFAULTS_FILE"), "option file, group [client]: user, password, host, port, socket, ssl-mode, server-public-key-path")
	database := flags.String("database", fromEnvironment("LOADPRINT_DATABASE", "sbtest"), "database with the sbtest tables")
	interpolate := flags.Bool("interpolate-params", true, "the driver inserts values into the text; false: prepare, execute and close for each query")
	flags.IntVar(&parsed.threads, "threads", number("LOADPRINT_THREADS", 1), "number of goroutines, each with a connection")
	flags.IntVar(&parsed.tables, "tables", 1, "number of sbtest tables")
	flags.IntVar(&parsed.tableSize, "table-size", 10000, "rows per table")
	flags.IntVar(&parsed.warmup, "warmup", number("LOADPRINT_WARMUP_SECONDS", 0), "length of the warm-up in seconds, not counted")
	flags.IntVar(&parsed.seconds, "seconds", number("LOADPRINT_SECONDS", 10), "length of the measurement in seconds")
	flags.BoolVar(&parsed.newConnections, "new-connection-per-query", false, "open and close a connection for each query")
	flags.BoolVar(&parsed.concatenate, "concatenate", false, "build each query's text with strconv, without placeholders")
	flags.IntVar(&parsed.maxIdle, "max-idle", 0, "idle connections of the pool, without a limit of open ones (database/sql: 2); 0: as many as goroutines, all open")
	processors := flags.Int("gomaxprocs", 0, "GOMAXPROCS; 0: all CPUs")
	if err := flags.Parse(arguments); err != nil {
		return parsed, err
	}
	for _, name := range []string{"LOADPRINT_THREADS", "LOADPRINT_WARMUP_SECONDS", "LOADPRINT_SECONDS"} {
		if _, err := strconv.Atoi(orElse(os.Getenv(name), "0")); err != nil {
			return parsed, fmt.Errorf("%s=%s: give whole numbers only", name, os.Getenv(name))
		}
	}
	if rate := orElse(os.Getenv("LOADPRINT_RATE"), "0"); rate != "0" {
		return parsed, fmt.Errorf("LOADPRINT_RATE=%s: this program has no rate, leave it out", rate)
	}
	if flags.NArg() > 0 {
		return parsed, fmt.Errorf("unexpected argument `%s`: give flags only", flags.Arg(0))
	}
	if parsed.threads < 1 || parsed.tables < 1 || parsed.tableSize < 1 || parsed.seconds < 1 || parsed.warmup < 0 || parsed.maxIdle < 0 {
		return parsed, errors.New("-threads, -tables, -table-size and -seconds must be at least 1, -warmup and -max-idle at least 0")
	}
	if *processors > 0 {
		runtime.GOMAXPROCS(*processors)
	}
	settings, err := clientGroup(*file)
	if err != nil {
		return parsed, err
	}
	parsed.config = configure(settings, *database, *interpolate)
	return parsed, secure(parsed.config, settings)
}

func configure(settings map[string]string, database string, interpolate bool) *mysql.Config {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = settings["user"], settings["password"], database
	config.InterpolateParams = interpolate
	if path := settings["socket"]; path != "" {
		config.Net, config.Addr = "unix", path
		return config
	}
	settings["host"], settings["port"] = orElse(settings["host"], "127.0.0.1"), orElse(settings["port"], "3306")
	config.Net, config.Addr = "tcp", settings["host"]+":"+settings["port"]
	return config
}

// clientGroup reads the settings of group [client] of an option file; without a file there are none.
func clientGroup(path string) (map[string]string, error) {
	settings := map[string]string{}
	if path == "" {
		return settings, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	inside := false
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if strings.HasPrefix(line, "[") {
			inside = line == "[client]"
		} else if key, value, _ := strings.Cut(line, "="); inside && line != "" && !strings.HasPrefix(line, "#") {
			name := strings.ReplaceAll(strings.TrimSpace(key), "_", "-")
			settings[strings.TrimPrefix(name, "loose-")] = unquoted(strings.TrimSpace(value))
		}
	}
	return settings, scanner.Err()
}

var escapes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\'`, `'`, `\s`, " ", `\t`, "\t", `\n`, "\n", `\r`, "\r")

func unquoted(value string) string {
	for _, mark := range []string{`"`, `'`} {
		if len(value) >= 2 && strings.HasPrefix(value, mark) && strings.HasSuffix(value, mark) {
			value = value[1 : len(value)-1]
			break
		}
	}
	return escapes.Replace(value)
}

func orElse(value, other string) string {
	if value == "" {
		return other
	}
	return value
}

func fromEnvironment(name, other string) string {
	return orElse(os.Getenv(name), other)
}

func number(name string, other int) int {
	if value, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return value
	}
	return other
}
