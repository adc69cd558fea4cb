// loadprint-go-lookup selects rows of sbtest tables by primary key with
// github.com/go-sql-driver/mysql, one connection per goroutine, for comparisons of drivers.
// It prints a line per second and one line of JSON at the end.
//
// The options -gomaxprocs=1 and -new-connection-per-query reproduce two mistakes of published
// comparisons.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// worker is the counter of a goroutine, padded to separate cache lines.
type worker struct {
	queries atomic.Uint64
	_       [120]byte
}

func main() {
	parsed, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(parsed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadprint-go-lookup:", err)
		os.Exit(2)
	}
}

func run(parsed options) error {
	// Not a data source name, which cannot contain a TLS configuration.
	connector, err := mysql.NewConnector(parsed.config)
	if err != nil {
		return err
	}
	database := sql.OpenDB(connector)
	defer database.Close()
	database.SetMaxOpenConns(parsed.threads)
	database.SetMaxIdleConns(parsed.threads)
	if parsed.maxIdle > 0 {
		database.SetMaxOpenConns(0)
		database.SetMaxIdleConns(parsed.maxIdle)
	}
	if parsed.newConnections {
		database.SetMaxIdleConns(-1)
	}
	interrupt, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	running, cancel := context.WithCancelCause(interrupt)
	defer cancel(nil)
	workers := make([]worker, parsed.threads)
	var group sync.WaitGroup
	for number := range workers {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			if err := lookUp(running, database, parsed, number, &workers[number].queries); err != nil {
				cancel(err)
			}
		}(number)
	}
	counted, seconds := measure(running, workers, parsed)
	failure := context.Cause(running)
	cancel(nil)
	group.Wait()
	if interrupt.Err() != nil {
		return errors.New("interrupted")
	}
	if failure != nil {
		return failure
	}
	return report(parsed, counted, seconds)
}

// lookUp runs lookups until the context ends.
func lookUp(running context.Context, database *sql.DB, parsed options, number int, queries *atomic.Uint64) error {
	random := rand.New(rand.NewSource(1 + int64(number)))
	var k int
	for running.Err() == nil {
		table, id := random.Intn(parsed.tables)+1, random.Intn(parsed.tableSize)+1
		text, values := "SELECT k FROM sbtest"+strconv.Itoa(table)+" WHERE id = ", []any{id}
		if parsed.concatenate {
			text, values = text+strconv.Itoa(id), nil
		} else {
			text += "?"
		}
		if err := database.QueryRowContext(context.Background(), text, values...).Scan(&k); err != nil {
			return fmt.Errorf("sbtest%d, id %d: %w", table, id, err)
		}
		queries.Add(1)
	}
	return nil
}

// measure prints a line per second and returns the lookups and the length of the measurement,
// which excludes the warm-up.
func measure(running context.Context, workers []worker, parsed options) (uint64, float64) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	begin, counted := time.Now(), total(workers)
	if parsed.warmup == 0 {
		fmt.Println("measure begins")
	}
	last := counted
	for second := 1; second <= parsed.warmup+parsed.seconds; second++ {
		select {
		case <-running.Done():
			return total(workers) - counted, time.Since(begin).Seconds()
		case <-ticker.C:
		}
		now := total(workers)
		if second <= parsed.warmup {
			fmt.Printf("[ %ds ] warm-up\n", second)
		} else {
			fmt.Printf("[ %ds ] threads: %d lookups: %d\n", second, len(workers), now-last)
		}
		last = now
		if second == parsed.warmup {
			begin, counted = time.Now(), now
			fmt.Println("measure begins")
		}
	}
	seconds := time.Since(begin).Seconds()
	fmt.Println("measure ends")
	return last - counted, seconds
}

func total(workers []worker) uint64 {
	sum := uint64(0)
	for number := range workers {
		sum += workers[number].queries.Load()
	}
	return sum
}

func report(parsed options, counted uint64, seconds float64) error {
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"operations":               counted,
		"seconds":                  seconds,
		"per_second":               float64(counted) / seconds,
		"threads":                  parsed.threads,
		"gomaxprocs":               runtime.GOMAXPROCS(0),
		"interpolate_params":       parsed.config.InterpolateParams,
		"new_connection_per_query": parsed.newConnections,
		"go":                       runtime.Version(),
	})
}
