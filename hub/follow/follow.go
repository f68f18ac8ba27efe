// Package follow keeps a hub up to date with the GitOps branches of its platform. It reads the
// records and compiles the platform's policies in a separate process, which frees its memory when
// it ends.
package follow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/desired"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Line is a line of the process's output. Each line except the last has the wanted state of an
// environment, and the last one has the list of environments.
type Line struct {
	Wanted *state.DesiredState `json:"wanted,omitempty"`
	End    *End                `json:"end,omitempty"`
}

// maxLine limits the bytes of a line, because the hub keeps the content in memory.
const maxLine = 256 << 20

// End is the last line.
type End struct {
	Environments []string          `json:"environments"` // in the order of promotion
	Unreadable   map[string]string `json:"unreadable,omitempty"`
}

// Write reads the wanted state of a platform, and writes the lines.
func Write(ctx context.Context, w io.Writer, r session.Request) error {
	st, err := session.Open(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	lines, end := json.NewEncoder(w), End{Unreadable: map[string]string{}}
	for _, stage := range st.Stages {
		if name := stage.Policy.Name; !slices.Contains(end.Environments, name) {
			end.Environments = append(end.Environments, name)
		}
	}
	unreadable, err := desired.Read(ctx, st, func(wanted *state.DesiredState) error {
		line, err := json.Marshal(Line{Wanted: wanted})
		if len(line) > maxLine {
			end.Unreadable[wanted.Environment] = fmt.Sprintf("what it wants has more than %s",
				supervisor.SizeText(maxLine))
			return nil
		}
		return errors.Join(err, lines.Encode(json.RawMessage(line)))
	})
	if err != nil {
		return err
	}
	for name, reason := range unreadable {
		end.Unreadable[name] = reason.Error()
	}
	return lines.Encode(Line{End: &end})
}

// Options describes the platform, and how often and for how long to read it.
type Options struct {
	Hub *hub.Hub
	// Process returns a process that calls Write. The process has not started yet.
	Process func(ctx context.Context) (*exec.Cmd, error)
	// Repository is the platform's repository. Remote opens a repository.
	Repository string
	Remote     func(ctx context.Context, url string) (*remote.Remote, error)
	// Every is the time between two checks of the branches.
	Every time.Duration
	// Patience is how long the process may take; 0 means 10 minutes.
	Patience time.Duration
	// Follower calls Problem with the error when it can no longer read the wanted state, and Over
	// when it can read it again.
	Problem func(error)
	Over    func(string)
}

// Follower follows one platform. Its methods may be called by several goroutines.
type Follower struct {
	Options

	moved    chan struct{}
	refs     map[string]string // the branches of each repository at the last read
	whole    time.Time         // the last time that everything was read
	failed   *failure          // the failure of the last read, nil if it succeeded
	mu       sync.Mutex
	problems map[string]string // by environment; "" for all
	looked   time.Time         // when the follower last saw the branches
	begun    bool              // the follower has seen the branches since this process began
}

// New returns a Follower that has not read anything yet.
func New(o Options) *Follower {
	o.Patience = cmp.Or(o.Patience, 10*time.Minute)
	return &Follower{Options: o, moved: make(chan struct{}, 1), looked: time.Now()}
}

// failure is a failed read. The follower waits four times as long as that read took before it reads
// the same branches again. A platform beyond the time limit therefore does not keep a processor
// busy.
type failure struct {
	err   error
	refs  map[string]string
	pause time.Duration
	again time.Time // after the pause
}

// readEvery is the time after which everything is read, even if no branch has moved.
const readEvery = 10 * time.Minute

// Moved makes the follower look at the branches at once.
func (f *Follower) Moved() {
	select {
	case f.moved <- struct{}{}:
	default: // it will
	}
}

// Why explains why the wanted state of an environment may be older than its branch. If environment
// is "", it explains this for all environments. It returns "" if the wanted state is up to date.
func (f *Follower) Why(environment string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	unwritable := f.Hub.Unwritable()
	switch all := f.problems[""]; {
	case unwritable != nil:
		return "the hub can write nothing, and refuses reports: " + unwritable.Error()
	case all != "":
		return all
	case !f.begun && len(f.Hub.Fleet().Names()) == 0:
		return firstTime
	}
	return f.problems[environment]
}

// firstTime explains why a hub that has just started knows no environment.
const firstTime = "the platform is being read for the first time"

// note replaces the current problems. It reports the new problems, and the problems that are over.
// again is when the follower tries again.
func (f *Follower) note(problems map[string]string, again string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		switch problem := problems[name]; {
		case problem == f.problems[name]:
		case name == "":
			f.Problem(fmt.Errorf("%s; what was wanted before holds, and it is tried again %s", problem,
				again))
		default:
			f.Problem(fmt.Errorf("environment %s: %s", name, problem))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.problems)) {
		switch _, still := problems[name]; {
		case still:
		case name == "":
			f.Over("what is wanted can be read again")
		default:
			f.Over("environment " + name + ": what is wanted can be read again")
		}
	}
	if !maps.Equal(f.problems, problems) {
		f.problems = problems
		f.Hub.Changed()
	}
}

// again returns when the follower tries again after an error.
func (f *Follower) again(err error) string {
	next := "in " + f.Every.String()
	if f.failed == nil || !errors.Is(err, f.failed.err) || f.failed.pause <= f.Every {
		return next
	}
	pause := (f.failed.pause + time.Second - 1).Truncate(time.Second)
	return fmt.Sprintf("after %s, or %s where a branch has moved", pause, next)
}

// problemsWith returns the problems of environments, and one problem of the whole platform. If
// there is no such problem, all is "".
func (f *Follower) problemsWith(all string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := maps.Clone(f.problems)
	delete(out, "")
	if all != "" {
		if out == nil {
			out = map[string]string{}
		}
		out[""] = all
	}
	return out
}

// saw records that the follower has seen the branches, even if none has moved. A problem with them
// is over.
func (f *Follower) saw() {
	f.note(f.problemsWith(""), "")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked = time.Now()
	if !f.begun {
		f.begun = true
		f.Hub.Changed()
	}
}

// Looked returns when the follower last saw the branches, or when it began if it never has.
func (f *Follower) Looked() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looked
}

// Run follows the branches until the context ends.
func (f *Follower) Run(ctx context.Context) {
	tick := time.NewTicker(f.Every)
	defer tick.Stop()
	for {
		switch err := f.Look(ctx); {
		case err == nil:
			f.saw()
		case ctx.Err() == nil:
			f.note(f.problemsWith(err.Error()), f.again(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-f.moved:
		}
	}
}

// Look reads the wanted state if a branch has moved.
func (f *Follower) Look(ctx context.Context) error {
	refs, err := f.look(ctx)
	if err != nil {
		return err
	}
	if maps.Equal(refs, f.refs) && time.Since(f.whole) < readEvery {
		return nil
	}
	begun := time.Now()
	if f.failed != nil && maps.Equal(refs, f.failed.refs) && begun.Before(f.failed.again) {
		return f.failed.err
	}
	f.failed = nil
	if err := f.read(ctx, refs); err != nil {
		pause := min(readEvery, 4*time.Since(begun))
		f.failed = &failure{err, refs, pause, time.Now().Add(pause)}
		return err
	}
	// These branches are from before the read. The next call reads branches that have moved since,
	// and repositories that were not known then.
	f.refs, f.whole = refs, time.Now()
	return nil
}

// look returns the branches of all repositories.
func (f *Follower) look(ctx context.Context) (map[string]string, error) {
	repositories := []string{f.Repository}
	for _, w := range f.Hub.Fleet().Environments() {
		repositories = append(repositories, w.Repository)
	}
	slices.Sort(repositories)
	out := map[string]string{}
	for _, url := range slices.Compact(repositories) {
		r, err := f.Remote(ctx, url)
		if err != nil {
			return nil, err
		}
		refs, err := r.Refs(ctx)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
		for name, id := range refs {
			if strings.HasPrefix(name, "refs/heads/") {
				out[reference(url, name)] = id.String()
			}
		}
	}
	return out, nil
}

// reference is the key of a branch in the map of all repositories' branches.
func reference(repository, name string) string { return repository + " " + name }

// read runs the process, and sends its output to the hub, given the branches. If an environment
// cannot be read, its previous wanted state stays valid.
func (f *Follower) read(ctx context.Context, refs map[string]string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.Patience,
		fmt.Errorf("the platform and its GitOps branches were not read within %s", f.Patience))
	defer cancel()
	process, err := f.Process(ctx)
	if err != nil {
		return err
	}
	var messages worker.Head
	process.Stderr = &messages
	out, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil && ctx.Err() != nil {
		return fmt.Errorf("what is wanted cannot be read: %w", context.Cause(ctx))
	} else if err != nil {
		return err
	}
	end, err := f.take(ctx, out, refs)
	_, _ = io.Copy(io.Discard, out)
	if failed := process.Wait(); failed != nil {
		text := strings.TrimSpace(messages.Text())
		switch {
		case ctx.Err() != nil:
			text = context.Cause(ctx).Error()
		case text == "":
			text = "the process that reads it has ended: " + failed.Error()
		}
		return fmt.Errorf("what is wanted cannot be read: %s", strings.TrimPrefix(text, "kalypso-hub: "))
	}
	if err != nil {
		return err
	}
	if err := f.Hub.Order(ctx, end.Environments); err != nil {
		return err
	}
	f.note(end.Unreadable, "")
	return nil
}

func (f *Follower) take(ctx context.Context, from io.Reader, refs map[string]string) (*End, error) {
	lines, gone := json.NewDecoder(from), map[string]string{}
	for position := 0; ; position++ {
		var l Line
		if err := lines.Decode(&l); err != nil {
			return nil, fmt.Errorf("what is wanted: %w", err)
		}
		if l.End != nil {
			if l.End.Unreadable == nil {
				l.End.Unreadable = gone
			}
			maps.Copy(l.End.Unreadable, gone)
			return l.End, nil
		}
		if l.Wanted == nil {
			continue
		}
		is := f.wantedOf(l.Wanted.Environment)
		if lost := lost(is, l.Wanted, refs); lost != "" {
			gone[l.Wanted.Environment] = lost
			continue
		}
		if is != nil && is.Same(l.Wanted) {
			continue
		}
		if err := f.Hub.Want(ctx, position, l.Wanted); err != nil {
			return nil, err
		}
	}
}

// wantedOf returns the hub's wanted state of an environment, or nil if the hub does not have it.
func (f *Follower) wantedOf(environment string) *state.DesiredState {
	for _, is := range f.Hub.Fleet().Environments() {
		if is.Environment == environment {
			return is
		}
	}
	return nil
}

// lost returns a problem if a branch had a tree that the hub has read, and no longer has it.
// Somebody has deleted it, because promotions never remove the tree. It returns "" for other
// branches, and if the tree has moved to a different place.
func lost(had, has *state.DesiredState, refs map[string]string) string {
	if had == nil || len(had.Commits) == 0 || len(has.Commits) > 0 ||
		had.Repository != has.Repository || had.Branch != has.Branch || had.Path != has.Path {
		return ""
	}
	what := "the tree that branch " + has.Branch + " had is gone"
	if _, there := refs[reference(has.Repository, "refs/heads/"+has.Branch)]; !there {
		what = "branch " + has.Branch + ", which was there, is gone"
	}
	return fmt.Sprintf("%s from %s: what was wanted at its commit %.12s holds until the branch is "+
		"back, or something is promoted", what, has.Repository, had.Commits[0].ID)
}
