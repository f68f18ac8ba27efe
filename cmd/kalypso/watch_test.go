package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/testing/commandtest"
)

// watching is a platform with a process of kalypso watch.
type watching struct {
	*testing.T
	platform string
	cmd      *exec.Cmd
	stderr   bytes.Buffer
	blocks   chan string // the output, up to each end of a block
	exited   chan error
}

// newWatching makes a platform of two environments.
func newWatching(t *testing.T, args ...string) *watching {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &watching{T: t, platform: filepath.Join(base, "p"), blocks: make(chan string, 100), exited: make(chan error, 1)}
	if err := os.CopyFS(w.platform, os.DirFS(filepath.Join(repository, "testdata", "platform"))); err != nil {
		t.Fatal(err)
	}
	w.cmd = exec.Command("kalypso", append([]string{"watch", "-C", w.platform}, args...)...)
	w.cmd.Dir = base
	w.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + base, "CUE_CACHE_DIR=" + filepath.Join(base, "cue"), "CUE_REGISTRY=none", "TERM=xterm",
	}
	return w
}

// start runs the process with its output in pipes.
func (w *watching) start() *watching {
	w.Helper()
	out, in := io.Pipe()
	w.cmd.Stdout, w.cmd.Stderr = in, &w.stderr
	if err := w.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.follow(out, "\n\n", func() { _ = in.Close() })
	return w
}

// follow reads the output of the process, and waits for its end.
func (w *watching) follow(r io.Reader, end string, ended func()) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		scanner := bufio.NewScanner(r)
		scanner.Split(func(data []byte, atEOF bool) (int, []byte, error) {
			if i := bytes.Index(data, []byte(end)); i >= 0 {
				return i + len(end), data[:i+len(end)], nil
			}
			if atEOF && len(data) > 0 {
				return len(data), data, nil
			}
			return 0, nil, nil
		})
		for scanner.Scan() {
			w.blocks <- scanner.Text()
		}
		close(w.blocks)
	}()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		err := w.cmd.Wait()
		ended()
		<-read
		w.exited <- err
	}()
	w.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		<-gone
	})
}

// patience is the longest time to wait for anything.
const patience = 5 * time.Minute

// next returns the next block.
func (w *watching) next() string {
	w.Helper()
	select {
	case block, ok := <-w.blocks:
		if !ok {
			w.Fatal("it has ended")
		}
		return block
	case <-time.After(patience):
		w.Fatal("nothing is printed")
	}
	return ""
}

// expect checks that the next block has the texts.
func (w *watching) expect(texts ...string) {
	w.Helper()
	block := w.next()
	for _, text := range texts {
		if !strings.Contains(block, text) {
			w.Fatalf("there is no %q in\n%s", text, block)
		}
	}
}

// save writes a file as editors do: it writes another file first, and then renames it. That is
// one change.
func (w *watching) save(name, text string) {
	w.Helper()
	name = filepath.Join(w.platform, name)
	if err := errors.Join(os.WriteFile(name+"~", []byte(text), 0o666), os.Rename(name+"~", name)); err != nil {
		w.Fatal(err)
	}
}

// ends checks how the process ends, and returns its output to stderr.
func (w *watching) ends(code int) string {
	w.Helper()
	select {
	case err := <-w.exited:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			w.Fatal(err)
		}
		if got := w.cmd.ProcessState.ExitCode(); got != code {
			w.Fatalf("exit code %d, not %d:\n%s", got, code, &w.stderr)
		}
	case <-time.After(patience):
		w.Fatal("it does not end")
	}
	return w.stderr.String()
}

const another = "package platform\n\nconfigs: another: {match: region: \"east\", values: ANOTHER: %q}\n"

func TestWatch(t *testing.T) {
	for _, flags := range [][]string{nil, {"--poll"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			w := newWatching(t, append(flags, "--to", "out")...) // in the platform
			w.start()
			w.expect("built in ", "no problems", "added    dev/small/shop-test\n", "added    prod/large/shop-live\n")

			w.save("environments/dev/another.cue", fmt.Sprintf(another, "first"))
			w.expect("changed  dev/small/shop-test\n\n")
			config := filepath.Join(w.platform, "out", "dev", "small", "shop-test", "platform-config.yaml")
			if text, err := os.ReadFile(config); err != nil || !strings.Contains(string(text), "ANOTHER: first") {
				t.Errorf("%v\n%s", err, text)
			}

			w.save("environments/dev/another.cue", "package platform\n\nconfigs: {\n")
			w.expect("1 error", "error[K1001]", "environments/dev/another.cue:3:10")
			w.save("environments/dev/another.cue", fmt.Sprintf(another, "second, longer"))
			w.expect("no problems", "changed  dev/small/shop-test\n")

			// A link to a missing file stops the build of its environment, and not the command.
			link := filepath.Join(w.platform, "environments", "dev", "link.cue")
			if err := os.Symlink("nowhere", link); err != nil {
				t.Fatal(err)
			}
			w.expect("1 error", "error[K1002]: link.cue is a link that leads nowhere")
			if err := os.Remove(link); err != nil {
				t.Fatal(err)
			}
			w.expect("no problems")

			// A new environment, first declared and then with a folder.
			w.save("qa.cue", "package platform\n\nenvironments: qa: {}\n")
			w.expect("qa ")
			// The folder and its file appear at once.
			aside := filepath.Join(filepath.Dir(w.platform), "qa")
			if err := os.Mkdir(aside, 0o777); err != nil {
				t.Fatal(err)
			}
			text := "package platform\n\nclusterTypes: tiny: {labels: size: \"tiny\", reconciler: \"flux\"}\n"
			if err := os.WriteFile(filepath.Join(aside, "qa.cue"), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(aside, filepath.Join(w.platform, "environments", "qa")); err != nil {
				t.Fatal(err)
			}
			w.expect("qa           1 ")
			w.save("environments/qa/more.cue", strings.ReplaceAll(text, "tiny", "little"))
			w.expect("qa           2 ")

			if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if stderr := w.ends(130); stderr != "kalypso: interrupted\n" {
				t.Errorf("stderr: %s", stderr)
			}
		})
	}
}

// TestWatchBounds checks that an evaluation that takes too long is not repeated until its files
// change, even if the program has started again several times.
func TestWatchBounds(t *testing.T) {
	const endless = "package platform\n\nimport \"list\"\n\n_pairs: [for a in list.Range(0, 10000, 1) for b in list.Range(0, 10000, 1) {a * b}]\n"
	w := newWatching(t, "--poll", "--evaluation-cpu", "500ms")
	w.save("environments/dev/pairs.cue", endless)
	w.start()
	w.expect("error[K1116]: environment dev cannot be evaluated", "prod         1 ")
	w.save("environments/dev/pairs.cue", "package platform\n")
	w.expect("no problems", "dev          2 ")
	w.save("environments/prod/pairs.cue", endless)
	w.expect("error[K1116]: environment prod cannot be evaluated", "dev          2 ")
}

// TestWatchLocked checks that kalypso.lock and vendored sources count as files of the platform.
func TestWatchLocked(t *testing.T) {
	t.Parallel()
	chart := commandtest.Archive(t, map[string][]byte{
		"Chart.yaml":              []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"),
		"templates/settings.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"),
	})
	w := newWatching(t, "dev", "--to", "out")
	w.save("environments/dev/web.cue", `package platform

clusterTypes: [_]: kubernetesVersion: "1.33.1"
workloads: web: {
	workspace: "web-team"
	labels: tier: "web"
	deploymentTargets: live: {
		environment: "dev"
		render:      true
		manifests: helm: {repo: "https://charts.example.com", chart: "web", version: "1.x"}
	}
}
`)
	w.start()
	w.expect("error[K3011]: chart web 1.x of https://charts.example.com is not in kalypso.lock", "added    dev/small/shop-test\n")

	entry := dependency.Entry{
		Source:   dependency.Source{Kind: dependency.Chart, URL: "https://charts.example.com", Chart: "web", Version: "1.x"},
		Revision: "1.0.0", Content: dependency.DigestOf(chart), Size: int64(len(chart)),
	}
	base := filepath.Dir(w.platform)
	written := dependency.NewLock([]dependency.Entry{entry}).Write(base)
	if err := errors.Join(written, os.Rename(filepath.Join(base, dependency.FileName), filepath.Join(w.platform, dependency.FileName))); err != nil {
		t.Fatal(err)
	}
	w.expect("error[K3012]: the content of chart web 1.x of https://charts.example.com, pinned to 1.0.0, is not in the store")

	// A vendored source counts at once.
	aside := filepath.Join(base, "vendor")
	if _, err := dependency.OpenStore("", aside).Put(chart); err != nil {
		t.Fatal(err)
	}
	vendor := filepath.Join(w.platform, "vendor")
	if err := os.Rename(aside, vendor); err != nil {
		t.Fatal(err)
	}
	w.expect("no problems", "added    dev/small/web-live\n")
	if _, err := os.Stat(filepath.Join(w.platform, "out", "dev", "small", "web-live", "manifests.yaml")); err != nil {
		t.Error(err)
	}

	// One of its files is removed, and the assignments keep their output.
	hex := strings.TrimPrefix(string(entry.Content), "sha256:")
	if err := os.Remove(filepath.Join(vendor, "sha256", hex[:2], hex)); err != nil {
		t.Fatal(err)
	}
	w.expect("error[K3012]")
	if _, err := os.Stat(filepath.Join(w.platform, "out", "dev", "small", "web-live", "manifests.yaml")); err != nil {
		t.Error(err)
	}
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	w.ends(130)
}

func TestWatchEndsWithoutPlatform(t *testing.T) {
	t.Parallel()
	w := newWatching(t).start()
	w.expect("no problems")
	// Moved, it goes at once.
	if err := os.Rename(w.platform, w.platform+"-moved"); err != nil {
		t.Fatal(err)
	}
	if stderr := w.ends(2); stderr != "kalypso: "+w.platform+" is gone\n" {
		t.Errorf("stderr: %s", stderr)
	}
}

func TestWatchTerminated(t *testing.T) {
	t.Parallel()
	w := newWatching(t, "dev").start()
	if strings.Contains(w.next(), "prod") {
		t.Error("it builds what nobody asked for")
	}
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.ends(143)
}

// TestWatchForPrograms: with diagnostics for programs stdout has nothing else.
func TestWatchForPrograms(t *testing.T) {
	t.Parallel()
	w := newWatching(t, "--diagnostics", "json")
	w.save("stray.cue", "package other\n")
	out, in := io.Pipe()
	w.cmd.Stdout = in
	w.cmd.Stderr = &w.stderr
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.follow(out, "\n}\n", func() { _ = in.Close() })
	w.expect("{\n", `"code": "K1202"`)
	w.save("stray.cue", "package platform\n")
	w.expect(`"items": []`)
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if stderr := w.ends(130); !strings.HasPrefix(stderr, "built in ") || !strings.Contains(stderr, "no problems") {
		t.Errorf("stderr: %s", stderr)
	}
}

// If a platform has no files, or no environments, watch shows the next step. It builds as soon as
// there is an environment.
func TestWatchEmpty(t *testing.T) {
	t.Parallel()
	w := newWatching(t, "--to", "../out")
	text, err := os.ReadFile(filepath.Join(w.platform, "platform.cue"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"platform.cue", "environments"} {
		if err := os.Rename(filepath.Join(w.platform, name), filepath.Join(filepath.Dir(w.platform), name)); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.expect("kalypso init DIR write")
	w.save("platform.cue", "package platform\n")
	w.expect("environments: dev: ")
	w.save("platform.cue", string(text))
	w.expect("dev ", "prod ")
	if err := os.Rename(filepath.Join(filepath.Dir(w.platform), "environments"), filepath.Join(w.platform, "environments")); err != nil {
		t.Fatal(err)
	}
	w.expect("no problems", "added    dev/small/shop-test\n")
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	w.ends(130)
}

// TestWatchOnTerminal: each build takes the place of the one before, in colour.
func TestWatchOnTerminal(t *testing.T) {
	t.Parallel()
	w := newWatching(t, "--to", "out")
	terminal, err := pty.StartWithSize(w.cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	w.follow(terminal, "Ctrl-C ends\r\n", func() {})
	w.Cleanup(func() { _ = terminal.Close() })
	w.expect("\x1b[H\x1b[2Jbuilt in ", "added    dev/small/shop-test\r\n", "waiting for changes of "+w.platform)
	w.save("environments/dev/another.cue", "package platform\n\nconfigs: {\n")
	w.expect("\x1b[H\x1b[2Jbuilt in ", "\x1b[1;31merror[K1001]:\x1b[0m ")
	if _, err := terminal.WriteString("\x03"); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	w.expect("kalypso: interrupted")
	w.ends(130)
}

// TestTerminal checks which writers are terminals, how large they are, and which of them are
// drawn on.
func TestTerminal(t *testing.T) {
	controller, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer controller.Close()
	defer tty.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if columns, rows := sizeOf(tty)(); columns != 80 || rows != 24 {
		t.Errorf("of unknown size: %d %d", columns, rows)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 50, Cols: 132}); err != nil {
		t.Fatal(err)
	}
	if columns, rows := sizeOf(tty)(); columns != 132 || rows != 50 {
		t.Errorf("%d %d", columns, rows)
	}
	if emphasis(tty) == nil || emphasis(&bytes.Buffer{}) != nil || sizeOf(&bytes.Buffer{}) != nil {
		t.Error("colour is for terminals")
	}
	t.Setenv("NO_COLOR", "1")
	if emphasis(tty) != nil || sizeOf(tty) == nil {
		t.Error("NO_COLOR is about colour")
	}
	t.Setenv("TERM", "dumb")
	if sizeOf(tty) != nil {
		t.Error("a dumb terminal cannot be drawn on")
	}
}

func TestShowProgress(t *testing.T) {
	for _, mode := range []string{progressAuto, progressPlain, progressNone} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			g := &console{streams: streams{err: &out}, progress: mode}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := compiler.Request{}
			stop := g.showProgress(ctx, &r)
			if r.Progress != nil {
				r.Progress(engine.Progress{Environment: "dev", Done: 12_000, Total: 100_000})
			}
			time.Sleep(11 * time.Second)
			stop()
			want := "dev: 12,000 of 100,000 assignments\n"
			if mode == progressNone {
				want = ""
			}
			if out.String() != want {
				t.Errorf("%s: %q", mode, &out)
			}
		})
	}
}

// TestInterruptEndsProgress: the display goes before its command does.
func TestInterruptEndsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		g := &console{streams: streams{err: &out}, progress: progressPlain}
		ctx, cancel := context.WithCancel(t.Context())
		r := compiler.Request{}
		stop := g.showProgress(ctx, &r)
		cancel()
		synctest.Wait()
		r.Progress(engine.Progress{Environment: "dev", Done: 1, Total: 2})
		time.Sleep(time.Minute)
		stop()
		if out.Len() > 0 {
			t.Errorf("%q", &out)
		}
	})
}

func TestChanged(t *testing.T) {
	names := func(environment string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("%s/small/app%d-test", environment, i))
		}
		return out
	}
	store := func(target string) *effect.Assignment { return &effect.Assignment{DeploymentTarget: target} }
	all := &effect.Way{From: "small", To: "small"}
	one := &effect.Way{From: "small", To: "small.no", Clusters: []string{"s1"}}
	two := &effect.Way{From: "small", To: "small.two", Clusters: []string{"s2", "s3"}}
	b := buildResult{
		Build: &compiler.Build{Environments: []*engine.Environment{
			{Inputs: &engine.Inputs{Name: "dev"}, Effect: &effect.Effect{Pairs: []effect.Pair{
				{Way: all, Before: store("a-test"), After: store("a-test")},
				{Way: one, Before: store("b-test")}, {Way: two, Before: store("b-test")},
				{Way: one, Before: store("c-test"), After: store("c-test")},
				{Way: all, Before: store("d-test")},
			}}},
			{Inputs: &engine.Inputs{Name: "prod"}}, {Inputs: &engine.Inputs{Name: "qa"}},
		}},
		written: &compiler.WriteResult{Changes: map[string]*tree.Changes{
			"dev": {}, "qa": {Assignments: tree.AssignmentChanges{Added: names("qa", 80)}},
		}},
	}
	var page bytes.Buffer
	changed(&page, b)
	want := "removed  dev/small/b-test on 3 clusters\nremoved  dev/small/d-test\nchanged  dev/small/a-test\nchanged  dev/small/c-test on s1\n"
	for _, name := range names("qa", 6) {
		want += "added    " + name + "\n"
	}
	if want += "and 74 more\n"; page.String() != want {
		t.Errorf("%s\nnot\n%s", &page, want)
	}
}
