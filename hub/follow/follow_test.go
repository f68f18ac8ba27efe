package follow_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/follow"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/promotion"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/forges"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/subject"
)

// asReader makes the test program read a platform as the process of the follower.
const asReader = "read-a-platform"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asReader {
		if err := follow.Write(context.Background(), os.Stdout, request(os.Args[2])); err != nil {
			fmt.Fprintln(os.Stderr, "kalypso-hub:", err)
			os.Exit(1)
		}
		return
	}
	isolated.Main(m)
}

func request(repository string) session.Request {
	return session.Request{
		Repository: repository, Path: ".", Now: time.Now, By: "Ada",
		Subjects: []subject.Subject{subject.Platform(compiler.Request{})},
		Remote:   open,
		Forge:    func(ctx context.Context, url string) (forge.Forge, error) { return forges.Open(ctx, url, "none") },
	}
}

func open(ctx context.Context, url string) (*remote.Remote, error) {
	return remote.Open(ctx, url, remote.Options{})
}

// world is a platform on a git server in a folder, with a hub that follows it.
type world struct {
	*testing.T
	platform, ops string
	hub           *hub.Hub
	follower      *follow.Follower
	reported      time.Time // the last time: if two reports have the same time, the worse counts
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{T: t, platform: filepath.Join(dir, "platform"), ops: filepath.Join(dir, "ops.git")}
	if err := os.CopyFS(w.platform, os.DirFS("../../testdata/platform")); err != nil {
		t.Fatal(err)
	}
	w.git(dir, "init", "-q", "--bare", w.ops)
	w.git(w.platform, "init", "-q", "-b", "main")
	w.write("gitops.cue", fmt.Sprintf("package platform\n\nenvironments: dev: {gitops: {repo: %q, branch: \"dev\", path: \"fleet\"}, promotion: write: \"push\"}\n", "file://"+w.ops))
	w.write("environments/dev/clusters.cue", "package platform\n\nclusters: {\n\t\"small-1\": clusterType: \"small\"\n\t\"small-2\": clusterType: \"small\"\n}\n")
	w.commit("Begin")
	db, err := store.Open(t.Context(), filepath.Join(dir, "hub.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	problem := func(err error) { t.Errorf("a problem: %v", err) }
	if w.hub, err = hub.Open(t.Context(), hub.Options{Store: db, StaleAfter: time.Hour, Now: time.Now, Problem: problem}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { w.hub.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	w.follower = follow.New(follow.Options{Hub: w.hub, Repository: w.platform, Remote: open, Every: time.Hour, Problem: problem, Process: func(ctx context.Context) (*exec.Cmd, error) {
		self, err := os.Executable()
		return exec.CommandContext(ctx, self, asReader, w.platform), err
	}})
	return w
}

func (w *world) git(dir string, args ...string) string {
	w.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.platform, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}

func (w *world) commit(subject string) {
	w.git(w.platform, "add", "-A")
	w.git(w.platform, "commit", "-qm", subject)
}

// session runs a session of promotion, and then has the hub look.
func (w *world) session(do func(*promotion.Session) error) {
	w.Helper()
	r := request(w.platform)
	r.Environments = []string{"dev"}
	s, err := promotion.Open(w.Context(), r)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := do(s); err != nil {
		w.Fatal(err)
	}
	w.look()
}

func (w *world) promote() {
	w.Helper()
	w.session(func(s *promotion.Session) error {
		status, err := s.Apply(w.Context(), plan.Intent{}, nil)
		for _, st := range status {
			if st.State != plan.Promoted {
				w.Errorf("%s: %s", st.State, st.Reason)
			}
		}
		return err
	})
}

func (w *world) look() {
	w.Helper()
	if err := w.follower.Look(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// report reports that a cluster runs the content of a commit of the branch.
func (w *world) report(cluster, commit string, reported state.ReportedState) {
	w.Helper()
	clusterType, _, _ := strings.Cut(cluster, "-")
	now := time.Now()
	if earliest := w.reported.Add(time.Millisecond); now.Before(earliest) {
		now = earliest
	}
	w.reported = now
	outcome, err := w.hub.Report(w.Context(), &state.Report{Cluster: cluster, Received: now, Snapshot: true, Items: []state.Item{
		{Object: "dev-" + clusterType + "-shop-test-assignment", Commit: commit, State: reported},
	}})
	if err != nil || outcome.Unlisted || len(outcome.Unknown) > 0 {
		w.Fatal(err, outcome)
	}
}

// expect checks the hub's state of each cluster.
func (w *world) expect(when string, want ...string) {
	w.Helper()
	var got []string
	w.hub.Fleet().List(state.Filter{}, state.Position{}, func(r state.Row) bool {
		got = append(got, r.Cluster+" "+r.State.String())
		return true
	})
	if !slices.Equal(got, want) {
		w.Errorf("%s: %q, and not %q", when, got, want)
	}
}

// TestFollow follows a branch through promotions, a foreign commit, and a rollback.
func TestFollow(t *testing.T) {
	const date = "GIT_COMMITTER_DATE"
	began := time.Now().Add(-2 * time.Hour).Truncate(time.Second)
	t.Setenv(date, began.Format(time.RFC3339))
	w := newWorld(t)
	t.Setenv(date, "")
	w.promote()
	w.expect("nobody has reported", "small-1 missing", "small-2 missing")
	if groups := w.hub.Fleet().Count(state.Filter{}, state.ByClusterType); len(groups) != 2 || groups[0].Values[0] != "large" || groups[0].Tally[state.Missing] != 1 {
		t.Errorf("the cluster type without clusters counts %v", groups)
	}
	first := w.git(w.ops, "rev-parse", "dev")
	w.report("small-1", first, state.ReportedOK)
	w.report("small-2", first, state.ReportedOK)
	w.expect("both run it", "small-1 ok", "small-2 ok")

	clone := filepath.Join(t.TempDir(), "clone")
	w.git(t.TempDir(), "clone", "-q", "-b", "dev", w.ops, clone)
	if err := os.WriteFile(filepath.Join(clone, "NOTES"), []byte("something else\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.git(clone, "add", "-A")
	w.git(clone, "commit", "-qm", "Something else")
	w.git(clone, "push", "-q", "origin", "dev")
	w.look()
	w.expect("a commit about something else", "small-1 ok", "small-2 ok")
	w.report("small-1", w.git(w.ops, "rev-parse", "dev"), state.ReportedOK)
	w.expect("one has that commit", "small-1 ok", "small-2 ok")

	w.write("base.cue", "package platform\n\nconfigs: more: {match: {}, values: MORE: \"yes\"}\n")
	t.Setenv(date, began.Add(time.Hour).Format(time.RFC3339))
	w.commit("More")
	t.Setenv(date, "")
	w.promote()
	w.expect("a promotion", "small-1 behind", "small-2 behind")
	second := w.git(w.ops, "rev-parse", "dev")
	w.report("small-1", second, state.ReportedFailed)
	w.report("small-2", second, state.ReportedProgressing)
	w.expect("one fails", "small-1 failed", "small-2 progressing")

	w.session(func(s *promotion.Session) error {
		_, err := s.Rollback(w.Context(), plan.RollbackTo{}, plan.Decision{Reason: "it fails"})
		return err
	})
	w.expect("a rollback", "small-1 behind", "small-2 behind")
	third := w.git(w.ops, "rev-parse", "dev")
	w.report("small-1", third, state.ReportedOK)
	w.report("small-2", first, state.ReportedOK) // it never had the second
	w.expect("both are back", "small-1 ok", "small-2 ok")
	w.report("small-1", "00000000000000000000000000000000000000ff", state.ReportedOK)
	w.expect("a commit that the branch never had", "small-1 drifted", "small-2 ok")

	releases, err := w.hub.Store().Releases(t.Context(), state.In("dev"), 10)
	if err != nil || len(releases) != 3 || !strings.Contains(releases[0].Subject, "Roll dev back") {
		t.Errorf("%v: %+v", err, releases)
	}
	// The branch has a newer commit than the platform's promoted one.
	if was := releases[1].Committed; !was.Equal(began.Add(time.Hour)) || releases[0].Committed.Before(releases[1].At.Truncate(time.Second)) {
		t.Errorf("committed at %s, and rolled back at %s", was, releases[0].Committed)
	}
}

// TestEdited checks that the hub knows the content of a commit that somebody has edited by hand. A cluster
// that runs the edited content has drifted, because the promoted content stays the wanted one.
func TestEdited(t *testing.T) {
	w := newWorld(t)
	w.promote()
	first := w.git(w.ops, "rev-parse", "dev")
	clone := filepath.Join(t.TempDir(), "clone")
	w.git(t.TempDir(), "clone", "-q", "-b", "dev", w.ops, clone)
	push := func(subject string) string {
		w.git(clone, "add", "-A")
		w.git(clone, "commit", "-qm", subject)
		w.git(clone, "push", "-q", "origin", "HEAD:dev")
		w.look()
		return w.git(clone, "rev-parse", "HEAD")
	}
	const folder = "fleet/small/shop-test"
	files, err := os.ReadDir(filepath.Join(clone, folder))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(clone, folder, files[0].Name())
	promoted, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(promoted, "# by hand\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	edit := push("Edit a generated file")
	if err := os.WriteFile(filepath.Join(clone, "NOTES"), []byte("something else\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	after := push("Something else")
	w.report("small-1", first, state.ReportedOK)
	w.report("small-2", edit, state.ReportedOK)
	w.expect("an edited file", "small-1 ok", "small-2 drifted")
	w.report("small-2", after, state.ReportedOK)
	w.expect("a commit after it", "small-1 ok", "small-2 drifted")
	w.hub.Fleet().List(state.Filter{Cluster: "small-2"}, state.Position{}, func(r state.Row) bool {
		if is := w.git(clone, "rev-parse", after+":"+folder); r.Running != is || r.Digest != w.git(clone, "rev-parse", first+":"+folder) || r.Message == "" {
			t.Errorf("%s runs, and %s is wanted, %q", r.Running, r.Digest, r.Message)
		}
		return true
	})
	if err := os.RemoveAll(filepath.Join(clone, folder)); err != nil {
		t.Fatal(err)
	}
	w.report("small-2", push("Remove it"), state.ReportedOK)
	w.expect("it is gone", "small-1 ok", "small-2 drifted")
	w.git(clone, "checkout", "-q", first, "--", folder)
	last := push("Bring it back")
	w.report("small-2", last, state.ReportedOK)
	w.expect("it is back", "small-1 ok", "small-2 ok")
	for _, is := range w.hub.Fleet().Environments() {
		for _, c := range is.Commits {
			if clean := c.ID == first || c.ID == last; clean != (len(c.Edited) == 0) {
				t.Errorf("in %q, %v is edited", c.Subject, c.Edited)
			}
		}
	}
}

// TestMovedMeanwhile checks that a branch that moves during a read is read the next time.
func TestMovedMeanwhile(t *testing.T) {
	w := newWorld(t)
	process := w.follower.Process
	w.follower.Process = func(ctx context.Context) (*exec.Cmd, error) {
		cmd, err := process(ctx)
		// The process reads, and then the first promotion happens.
		w.follower.Process = process
		out, failed := cmd.Output()
		if failed != nil {
			t.Fatal(failed)
		}
		r := request(w.platform)
		s, failed := promotion.Open(ctx, r)
		if failed != nil {
			t.Fatal(failed)
		}
		defer func() { _ = s.Close() }()
		if _, failed := s.Apply(ctx, plan.Intent{}, nil); failed != nil {
			t.Fatal(failed)
		}
		file := filepath.Join(t.TempDir(), "wanted.json")
		if failed := os.WriteFile(file, out, 0o644); failed != nil {
			t.Fatal(failed)
		}
		return exec.CommandContext(ctx, "cat", file), err
	}
	w.look()
	w.expect("it moved while it was read")
	w.look()
	w.expect("it is read again", "small-1 missing", "small-2 missing")
}

// TestProcess checks the error if the process takes too long, and if it is killed.
func TestProcess(t *testing.T) {
	for name, c := range map[string]struct {
		command  string
		patience time.Duration
		want     string
	}{
		"too long": {"exec sleep 600", time.Millisecond, "what is wanted cannot be read: the platform and its GitOps branches were not read within 1ms"},
		"too late": {"exec sleep 600", time.Nanosecond, "what is wanted cannot be read: the platform and its GitOps branches were not read within 1ns"},
		"killed":   {"kill -9 $$", time.Hour, "what is wanted cannot be read: the process that reads it has ended: signal: killed"},
	} {
		w := newWorld(t) // a failed follower waits before it tries again
		w.follower.Patience = c.patience
		w.follower.Process = func(ctx context.Context) (*exec.Cmd, error) {
			return exec.CommandContext(ctx, "sh", "-c", c.command), nil
		}
		if err := w.follower.Look(t.Context()); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAgain checks the time of the next read in messages: the same branches wait for longer than
// others.
func TestAgain(t *testing.T) {
	for every, want := range map[time.Duration]string{
		time.Hour:       "tried again in 1h0m0s$",
		time.Nanosecond: "tried again after [0-9]+s, or in 1ns where a branch has moved$",
	} {
		w := newWorld(t)
		w.follower.Every = every
		w.follower.Process = func(ctx context.Context) (*exec.Cmd, error) { return exec.CommandContext(ctx, "false"), nil }
		said := make(chan string, 1)
		w.follower.Problem = func(err error) { said <- err.Error() }
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.follower.Run(ctx); close(done) }()
		if got := <-said; !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("it says %q, and not %q", got, want)
		}
		stop()
		<-done
	}
}

// TestUnreadable checks that the wanted state stays the same if nothing newer can be read.
func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	w.promote()
	w.write("broken.cue", "package platform\n\nenvironments: dev: after: 7\n")
	w.commit("Break it")
	if err := w.follower.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "the base of the platform has errors") {
		t.Errorf("a platform that cannot be read: %v", err)
	}
	w.expect("the platform is broken", "small-1 missing", "small-2 missing")
	w.git(w.platform, "rm", "-q", "broken.cue")
	w.commit("Mend it")
	if err := os.Rename(w.ops, w.ops+".away"); err != nil {
		t.Fatal(err)
	}
	if err := w.follower.Look(t.Context()); err == nil {
		t.Error("a repository that is away: no error")
	}
	w.expect("the repository is away", "small-1 missing", "small-2 missing")
	if err := os.Rename(w.ops+".away", w.ops); err != nil {
		t.Fatal(err)
	}
	w.look()
	w.expect("it is back", "small-1 missing", "small-2 missing")
}

// TestGone checks that a deleted branch and a branch that never existed have different messages.
func TestGone(t *testing.T) {
	w := newWorld(t)
	if why := w.follower.Why(""); why != "the platform is being read for the first time" {
		t.Errorf("before anything was read: %q", why)
	}
	w.look()
	if why := w.follower.Why("dev") + w.follower.Why(""); why != "" {
		t.Errorf("before anything was promoted: %s", why)
	}
	w.promote()
	first := w.git(w.ops, "rev-parse", "dev")
	said := make(chan string, 1)
	w.follower.Problem, w.follower.Over = func(err error) { said <- err.Error() }, func(text string) { said <- text }
	version, _ := w.hub.Version()
	w.git(w.ops, "branch", "-m", "dev", "away")
	w.look()
	w.expect("the branch is gone", "small-1 missing", "small-2 missing")
	want := "branch dev, which was there, is gone from file://" + w.ops + ": what was wanted at its commit " + first[:12] + " holds until the branch is back, or something is promoted"
	if got := <-said; got != "environment dev: "+want || w.follower.Why("dev") != want {
		t.Errorf("it says %q, and %q to who asks", got, w.follower.Why("dev"))
	}
	if now, _ := w.hub.Version(); now == version {
		t.Error("answers have another problem, and the same version")
	}
	w.git(w.ops, "branch", "-m", "away", "dev")
	w.look()
	if got := <-said; got != "environment dev: what is wanted can be read again" {
		t.Errorf("it says %q", got)
	}
	empty := w.git(w.ops, "commit-tree", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "-p", "dev", "-m", "Empty it")
	w.git(w.ops, "branch", "-f", "dev", empty)
	w.look()
	if got := <-said; !strings.HasPrefix(got, "environment dev: the tree that branch dev had is gone from ") {
		t.Errorf("it says %q", got)
	}
}

// Why reports that the hub cannot write. Neither the wanted state nor the reports are current then.
func TestUnwritable(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "hub.db"))
	if err != nil {
		t.Fatal(err)
	}
	o := hub.Options{Store: db, StaleAfter: time.Hour, Now: time.Now, Problem: func(error) {}}
	h, err := hub.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { h.Run(t.Context()); close(done) }()
	t.Cleanup(func() { <-done; _ = db.Close() })
	f := follow.New(follow.Options{Hub: h})
	err = h.Do(t.Context(), func(context.Context, *store.Tx) (*state.Changes, error) {
		return nil, errors.New("disk full")
	})
	const want = "the hub can write nothing, and refuses reports: disk full"
	if why := f.Why("dev"); err == nil || why != want || f.Why("") != want {
		t.Errorf("%v, and it says %q", err, why)
	}
}

// TestSays checks that the follower reports a read error once, and its end once. An environment's
// problem stays known meanwhile.
func TestSays(t *testing.T) {
	w := newWorld(t)
	w.promote()
	type opened struct{ err error }
	next, said := make(chan opened), make(chan string, 10)
	w.follower.Problem, w.follower.Over = func(err error) { said <- err.Error() }, func(text string) { said <- text }
	w.follower.Remote = func(ctx context.Context, url string) (*remote.Remote, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case o := <-next:
			if o.err != nil {
				return nil, o.err
			}
			return open(ctx, url)
		}
	}
	const whole = `{"end":{"environments":["dev"]}}`
	reads := []string{whole, `{"end":{"environments":["dev"],"unreadable":{"dev":"its record is broken"}}}`, whole}
	w.follower.Process = func(ctx context.Context) (*exec.Cmd, error) {
		line := reads[0]
		reads = reads[1:]
		return exec.CommandContext(ctx, "echo", line), nil
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.follower.Run(ctx); close(done) }()
	look := func(errs ...error) { // at the two repositories
		for _, err := range errs {
			next <- opened{err}
		}
		w.follower.Moved()
	}
	expect := func(want string) {
		t.Helper()
		if got := <-said; got != want {
			t.Errorf("it says %q, and not %q", got, want)
		}
	}
	away := errors.New("the server is away")
	look(away)
	look(away)
	look(away)
	expect("the server is away; what was wanted before holds, and it is tried again in 1h0m0s")
	if why := w.follower.Why("dev"); why != "the server is away" || w.follower.Why("") != why {
		t.Errorf("while it is away: %q", why)
	}
	look(nil, nil)
	expect("what is wanted can be read again")
	look(nil, nil)
	w.git(w.ops, "branch", "moved", "dev")
	look(nil, nil)
	expect("environment dev: its record is broken")
	look(away)
	expect("the server is away; what was wanted before holds, and it is tried again in 1h0m0s")
	look(nil, nil)
	expect("what is wanted can be read again")
	if why := w.follower.Why("dev"); why != "its record is broken" {
		t.Errorf("afterwards: %q", why)
	}
	w.git(w.ops, "branch", "again", "dev")
	look(nil, nil)
	expect("environment dev: what is wanted can be read again")
	stop()
	<-done
	select {
	case more := <-said:
		t.Errorf("it says %q", more)
	default:
	}
}
