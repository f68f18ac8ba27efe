package hub_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// TestSlowKilled kills processes of a hub while many clusters report. The next process has every
// acknowledged report.
func TestSlowKilled(t *testing.T) {
	isolated.Slow(t, "kills processes under load")
	t.Run("SQLite", func(t *testing.T) { killed(t, hubtest.SQLite(t)()) })
	t.Run("PostgreSQL", func(t *testing.T) { killed(t, hubtest.Postgres(t)()) })
}

// reporter is one cluster, which counts its reports.
type reporter struct {
	cluster            string
	sent, acknowledged int
	at                 time.Time
}

// errAnswer is the error if a hub answers, but refuses a report.
var errAnswer = errors.New("the report was not acknowledged")

// report sends the next report, at least a millisecond later than the last. Two reports of the same
// millisecond have no order of time.
func (r *reporter) report(url string) error {
	r.sent++
	for next := r.at.Truncate(time.Millisecond).Add(time.Millisecond); time.Now().Before(next); {
		runtime.Gosched()
	}
	r.at = time.Now()
	body, err := json.Marshal(api.Report{Cluster: r.cluster, At: r.at, Items: []api.Item{{Assignment: "prod/edge/hello-main", Commit: fmt.Sprintf("%040x", 1), State: "failed", Message: strconv.Itoa(r.sent)}}})
	if err != nil {
		return err
	}
	res, err := http.Post(url+"/v1/reports", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode == http.StatusOK {
		r.acknowledged = r.sent
	} else if err == nil {
		err = fmt.Errorf("%w: %s %s", errAnswer, res.Status, text)
	}
	return err
}

func killed(t *testing.T, database string) {
	const clusters = 32
	f, c := &fleet{hosts: clusters}, &clock{is: time.Now()}
	r := start(t, database, c, time.Hour)
	r.want(f.commit("a"))
	r.stop()
	var reporters []*reporter
	for i := range clusters {
		reporters = append(reporters, &reporter{cluster: host(i)})
	}
	var cut atomic.Int64 // reports in progress
	for round := range 5 {
		url, kill := process(t, database)
		var acknowledged, underWay atomic.Int64
		var killed atomic.Bool
		var wg sync.WaitGroup
		enough := int64(300 + round*50)
		for _, r := range reporters {
			wg.Go(func() {
				for {
					underWay.Add(1)
					err := r.report(url)
					underWay.Add(-1)
					switch {
					case err == nil && acknowledged.Add(1) == enough:
						for underWay.Load() == 0 {
							runtime.Gosched()
						}
						killed.Store(true)
						kill()
					case err == nil:
					case !killed.Load() || errors.Is(err, errAnswer):
						t.Errorf("round %d: %s: %v", round, r.cluster, err)
						kill() // so that others end
						return
					default:
						if !errors.Is(err, syscall.ECONNREFUSED) {
							cut.Add(1)
						}
						return
					}
				}
			})
		}
		wg.Wait()
		if !killed.Load() || acknowledged.Load() < enough {
			t.Fatalf("round %d: the hub was not killed after %d reports: %d were acknowledged", round, enough, acknowledged.Load())
		}
		hub := start(t, database, &clock{is: time.Now()}, time.Hour)
		for _, r := range reporters {
			is := 0
			hub.Fleet().List(state.Filter{Cluster: r.cluster}, state.Position{}, func(row state.Row) bool { is, _ = strconv.Atoi(row.Message); return true })
			if is < r.acknowledged || is > r.sent {
				t.Errorf("round %d: %s has report %d: %d were sent, and %d was acknowledged", round, r.cluster, is, r.sent, r.acknowledged)
			}
		}
		rows := hubtest.Rows(hub.Fleet())
		var counted state.Tally
		for _, row := range rows {
			counted[row.State]++
		}
		if got := hub.counts(); got != counted {
			t.Errorf("round %d: the counts are %v, and there are %v", round, got, counted)
		}
		hub.stop()
	}
	if cut.Load() == 0 {
		t.Error("no report was under way when a hub was killed")
	}
}

// process starts a hub in a separate process.
func process(t *testing.T, database string) (url string, kill func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), databaseEnv+"="+database), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		var ended *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("the hub ended before it was killed: %v", err)
		}
	})
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(line), kill
}
