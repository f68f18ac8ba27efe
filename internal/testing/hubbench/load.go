//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
)

// fleet is the state of a load's clusters.
type fleet struct {
	options
	mu      sync.Mutex
	random  *rand.Rand
	next    int
	commits []int  // the last commit of each environment
	states  []byte // 1 for each cluster with a failure
	tokens  *tokens
}

const environments = 3

func newFleet(o options, t *tokens) *fleet {
	return &fleet{options: o, tokens: t, random: rand.New(rand.NewPCG(1, 1)),
		commits: make([]int, environments), states: make([]byte, o.clusters)}
}

func digest(environment, target, commit int) string {
	return fmt.Sprintf("%04x%04x%032x", environment, target, commit)
}

func commitID(environment, commit int) string { return fmt.Sprintf("%08x%032x", environment, commit) }

// types is the number of cluster types of an environment, in ten rings.
const types = 30

func (f *fleet) wanted(e int) *state.DesiredState {
	w := &state.DesiredState{Environment: fmt.Sprint("env", e), Repository: "https://git.example/gitops",
		Branch: fmt.Sprint("env", e)}
	for n := f.commits[e]; n >= 0; n-- {
		c := state.Commit{ID: commitID(e, n), Time: time.Unix(1_700_000_000+int64(n), 0), Was: map[string]string{}}
		for r := range 10 {
			c.Rings = append(c.Rings, state.Ring{Name: fmt.Sprint("r", r), Base: commitID(100, n), Own: "e"})
		}
		for t := range types {
			if n < f.commits[e] { // each commit changes one target
				c.Was[state.Key(typeName(t), targetName((n+1)%f.targets))] = digest(e, (n+1)%f.targets, max(0, n+1-f.targets))
			}
		}
		w.Commits = append(w.Commits, c)
	}
	for t := range types {
		folder := state.Folder{Name: typeName(t), ClusterType: typeName(t), Ring: fmt.Sprint("r", t%10),
			Base: commitID(100, f.commits[e]), Listed: true}
		for i := range f.targets {
			folder.Targets = append(folder.Targets, state.Target{Name: targetName(i),
				Workload: targetName(i)[:3], Version: fmt.Sprint(f.digestOf(e, i)), Digest: f.digestOf(e, i)})
		}
		w.Folders = append(w.Folders, folder)
	}
	for i := e; i < f.clusters; i += environments {
		w.Clusters = append(w.Clusters, state.Cluster{Name: clusterName(i), Folder: typeName(i % types)})
	}
	return w
}

// digestOf returns the digest of a target as of the last commit: the digest in the last commit
// that changed it.
func (f *fleet) digestOf(e, target int) string {
	n := f.commits[e]
	for n > 0 && n%f.targets != target {
		n--
	}
	return digest(e, target, max(0, n))
}

func typeName(i int) string    { return fmt.Sprintf("type%03d", i) }
func targetName(i int) string  { return fmt.Sprintf("w%02d-main", i) }
func clusterName(i int) string { return fmt.Sprintf("cluster%06d", i) }

type report struct {
	short, full []byte // full is sent if the hub requests it
	token       string
}

func (f *fleet) of(i int, short bool) report {
	e := i % environments
	r := api.Report{Cluster: clusterName(i), By: "kalypso observe", Snapshot: true,
		Digest: fmt.Sprintf("%d-%d-%d", i, f.commits[e], f.states[i])}
	out := report{token: f.tokens.clusters[i]}
	out.short, _ = json.Marshal(r)
	for t := range f.targets {
		it := api.Item{Assignment: fmt.Sprintf("env%d/%s/%s", e, typeName(i%types), targetName(t)),
			Commit: commitID(e, f.commits[e]), State: "ok", Since: time.Unix(1_700_000_000, 0)}
		if t == 0 && f.states[i] == 1 {
			it.State, it.Message = "failed", "Deployment/hello dry-run failed: admission webhook denied the request"
		}
		r.Items = append(r.Items, it)
	}
	out.full, _ = json.Marshal(r)
	if !short {
		out.short = out.full
	}
	return out
}

func (f *fleet) one(short bool, change float64) report {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.next % f.clusters
	f.next++
	if f.random.Float64() < change {
		f.states[i] = 1 - f.states[i]
	}
	return f.of(i, short)
}

func (f *fleet) mostlySame() report { return f.one(true, 0.02) }

func (f *fleet) full() report { return f.one(false, 0) }

// send sends a report, and sends it again with its items if the hub needs them.
func (p *process) send(r report) error {
	for _, body := range [][]byte{r.short, r.full} {
		req, err := http.NewRequest(http.MethodPost, p.url+"/v1/reports", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := p.do(req, r.token)
		if err != nil {
			return err
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode == http.StatusConflict {
			continue
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("POST /v1/reports: %s %s", res.Status, text)
		}
		return nil
	}
	return fmt.Errorf("the hub asks again for what it got")
}

// times are the measured times of repeated work.
type times struct {
	mu  sync.Mutex
	all []time.Duration
}

func (t *times) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, d)
}

// median returns the one in the middle, or 0.
func (t *times) median() time.Duration {
	if len(t.all) == 0 {
		return 0
	}
	slices.Sort(t.all)
	return t.all[len(t.all)/2]
}

func (t *times) print(name string, rate float64) {
	if len(t.all) == 0 {
		return
	}
	median := t.median() // they are sorted then
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
	second := ""
	if rate > 0 {
		second = fmt.Sprintf("%.0f", rate)
	}
	fmt.Printf("%-44s %10s %10s %10s %10s\n", name, second, ms(median), ms(t.all[len(t.all)*99/100]),
		ms(t.all[len(t.all)-1]))
}

// load sends count reports at a rate. If a report has to wait for the reports before it, its time
// starts when it was due.
func (p *process) load(f *fleet, next func(*fleet) report, rate float64, count int) (*times, error) {
	took, due, errs := &times{}, make(chan time.Time, count), make(chan error, 256)
	var wg sync.WaitGroup
	for range 128 {
		wg.Go(func() {
			for at := range due {
				if err := p.send(next(f)); err != nil {
					errs <- err
					return
				}
				took.add(time.Since(at))
			}
		})
	}
	begin := time.Now()
	for n := range count {
		at := begin.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		time.Sleep(time.Until(at))
		due <- at
	}
	close(due)
	wg.Wait()
	select {
	case err := <-errs:
		return took, err
	default:
		return took, nil
	}
}

// fill makes everything be wanted, and reported once, as fast as it goes.
func (p *process) fill(ctx context.Context, f *fleet) error {
	begin := time.Now()
	for e := range environments {
		if err := p.want(f, e); err != nil {
			return err
		}
	}
	fmt.Printf("everything is wanted for the first time: %.1f s\n", time.Since(begin).Seconds())
	begin = time.Now()
	if _, err := p.load(f, (*fleet).full, 1e9, f.clusters); err != nil {
		return err
	}
	took := time.Since(begin).Seconds()
	fmt.Printf("everything is reported for the first time: %.1f s, %.0f requests and %.0f "+
		"assignments a second\n", took, float64(f.next)/took, float64(f.next*f.targets)/took)
	return nil
}

func (p *process) want(f *fleet, e int) error {
	body, err := json.Marshal(f.wanted(e))
	if err != nil {
		return err
	}
	res, err := p.client.Post(p.url+"/want", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
		return fmt.Errorf("POST /want: %s %s", res.Status, text)
	}
	return nil
}

// release changes one workload of an environment, while reports come.
func (p *process) release(f *fleet) error {
	f.mu.Lock()
	f.commits[0]++
	f.mu.Unlock()
	begin := time.Now()
	if err := p.want(f, 0); err != nil {
		return err
	}
	fmt.Printf("a commit that changes %d of them: %.1f s\n", (f.clusters+environments-1)/environments,
		time.Since(begin).Seconds())
	begin = time.Now()
	f.next = 0
	if _, err := p.load(f, (*fleet).mostlySame, 1e9, f.clusters); err != nil {
		return err
	}
	fmt.Printf("all have it, as fast as it goes: %.1f s\n", time.Since(begin).Seconds())
	res, err := p.client.Post(p.url+"/heap", "", nil)
	if err == nil {
		_ = res.Body.Close()
	}
	return err
}

type question struct {
	path string
	took *times
}

// byVersion is the question that kalypso-observability-hub answers with a report.
const byVersion = "/v1/counts?by=workload,version,environment"

// ask sends questions until the returned function is called, which returns the times.
func (p *process) ask(f *fleet) func() []question {
	ctx, stop := context.WithCancel(context.Background())
	var questions []question
	var wg sync.WaitGroup
	for _, path := range []string{
		"/v1/environments", "/v1/counts?by=environment,ring", byVersion,
		"/v1/counts?by=cluster&environment=env1&clusterType=type001",
		"/v1/assignments?state=failed", "/v1/assignments?state=drifted",
		"/v1/clusters/" + clusterName(f.clusters/2), "/v1/history?limit=100",
		"/v1/history?environment=env1&workload=w03", "/v1/history?cluster=" + clusterName(f.clusters/2), "/metrics",
		"/", "/environments/env1", "/rollouts/env1", "/running?environment=env1&state=failed",
		"/workloads/w03", "/cluster-types/env1/type001", "/clusters/env1/" + clusterName(1), "/history",
	} {
		q := question{path, &times{}}
		questions = append(questions, q)
		wg.Go(func() {
			for ctx.Err() == nil {
				begin := time.Now()
				req, err := http.NewRequest(http.MethodGet, p.url+q.path, nil)
				if err != nil {
					return
				}
				res, err := p.do(req, f.tokens.viewer)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				if res.StatusCode != http.StatusOK {
					fmt.Println(q.path, res.Status)
					return
				}
				q.took.add(time.Since(begin))
				select {
				case <-ctx.Done():
				case <-time.After(500 * time.Millisecond):
				}
			}
		})
	}
	return func() []question {
		stop()
		wg.Wait()
		return questions
	}
}
