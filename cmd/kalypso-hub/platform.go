package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/hub/compiled"
	"github.com/kalypso-io/kalypso/hub/follow"
	"github.com/kalypso-io/kalypso/internal/again"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion"
	"github.com/kalypso-io/kalypso/promotion/forge/detect"
	"github.com/kalypso-io/kalypso/promotion/session"
	viewplatform "github.com/kalypso-io/kalypso/view/platform"
)

// platform is the location of a platform, and the limits for processes that read it.
type platform struct {
	repository, branch, path, forge string
	bounds                          boundFlags
}

func (p *platform) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.repository, "repo", "", "the git repository of the platform, a `URL` or a folder")
	f.StringVar(&p.branch, "from", "",
		"the `BRANCH` of that repository (default: the repository's own)")
	f.StringVar(&p.path, "path", ".", "the `FOLDER` of the platform in the repository")
	p.bounds.flags(f)
	f.StringVar(&p.forge, "forge", "", "what hosts the repositories: github, gitlab, gitea, or none "+
		"(default: by their URLs)")
}

// locate finds the repository of the platform if --repo is a folder.
func (p *platform) locate() error {
	if kinds := []string{"", detect.GitHub, detect.GitLab, detect.Gitea,
		detect.None}; !slices.Contains(kinds, p.forge) {
		return fmt.Errorf("--forge %s: there are github, gitlab, gitea and none", p.forge)
	}
	info, err := os.Stat(p.repository)
	switch {
	case p.repository == "":
		return errors.New("--repo is missing: give the repository of the platform, a URL or a folder")
	case err == nil && info.IsDir():
		if p.repository, err = filepath.Abs(p.repository); err != nil {
			return err
		}
		if !isThere(p.repository, ".git") && !isThere(p.repository, "HEAD") {
			return fmt.Errorf("--repo %s: this folder is no git repository; where the platform is in a "+
				"folder of one, give the repository, and that folder with --path", p.repository)
		}
	case !strings.Contains(p.repository, ":"): // as every URL has
		return fmt.Errorf("--repo %s: there is no such folder, and a URL begins with https:// or ssh://",
			p.repository)
	}
	return nil
}

func isThere(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// args returns the arguments of a process that reads the platform.
func (p *platform) args(command string) []string {
	return append([]string{command, "--repo", p.repository, "--from", p.branch, "--path", p.path,
		"--forge", p.forge}, p.bounds.args()...)
}

// process returns the process that reads the desired state of the platform.
func (p *platform) process(ctx context.Context) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, self, p.args("wanted")...), nil
}

func (p *platform) remote(ctx context.Context, url string) (*remote.Remote, error) {
	return remote.Open(ctx, url, remote.Options{Store: remote.DefaultStore()})
}

func newWanted() *cobra.Command {
	var p platform
	cmd := &cobra.Command{
		Use: "wanted", Short: "Print what a platform's GitOps branches want, as the hub reads it",
		Args: cobra.NoArgs,
		Long: "wanted prints what a platform's GitOps branches want of clusters: a line of JSON for " +
			"each\nenvironment. serve runs it in a process of its own.",
		RunE: func(cmd *cobra.Command, _ []string) error { return p.wanted(cmd.Context()) },
	}
	p.flags(cmd)
	return cmd
}

func (p *platform) wanted(ctx context.Context) error {
	if err := p.locate(); err != nil {
		return err
	}
	return p.open("reading the platform and its GitOps branches", func(r compiler.Request) error {
		return withDiagnostic(follow.Write(ctx, os.Stdout, p.request(r)))
	})
}

// open calls a function with everything that a compilation needs, within the bounds of this
// process. activity names the work in the error of a process that has too little memory.
func (p *platform) open(activity string, use func(compiler.Request) error) error {
	s, err := p.bounds.supervise(activity)
	if err != nil {
		return err
	}
	workers := compiler.NewWorkers()
	defer workers.Close()
	c, err := cache.Open(cache.Options{})
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // what the cache could not write costs time only
	return use(compiler.Request{Cache: c, Workers: workers, Supervisor: s})
}

// request returns the request that opens a session of the platform.
func (p *platform) request(r compiler.Request) session.Request {
	out := promotion.NewRequest(promotion.Access{Compiler: r, Forge: p.forge, Now: time.Now})
	out.Repository, out.Branch, out.Path = p.repository, p.branch, p.path
	return out
}

// withDiagnostic adds the first diagnostic of a platform's base to its error.
func withDiagnostic(err error) error {
	var base *session.PlatformError
	if !errors.As(err, &base) {
		return err
	}
	for _, d := range base.Diagnostics {
		if d.Severity == diag.Error {
			return fmt.Errorf("%w: %s", err, diagnosticLine(&d))
		}
	}
	return err
}

// diagnosticLine returns a diagnostic as one line: the place, the message and the hint.
func diagnosticLine(d *diag.Diagnostic) string {
	text := d.Message
	if i := slices.IndexFunc(d.Sites, func(s diag.Site) bool { return !s.Position.IsZero() }); i >= 0 {
		at := d.Sites[i].Position
		text = fmt.Sprintf("%s:%d:%d: %s", at.File, at.Line, at.Column, text)
	}
	if d.Hint != "" {
		text += "; " + d.Hint
	}
	return text
}

// The bounds of the processes that compile: their number, the time without a question, and the
// time for an answer.
const (
	maxCompiled  = 2
	idleCompiled = 5 * time.Minute
	compileLimit = 2 * time.Minute
)

func (p *platform) pool() *compiled.Pool {
	return &compiled.Pool{Most: maxCompiled, Idle: idleCompiled, Limit: compileLimit,
		Start: func(at compiled.At) (*exec.Cmd, error) {
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			return exec.Command(self,
				append(p.args("compiled"), "--env", at.Environment, "--base", at.Base, "--own", at.Own)...), nil
		}}
}

func newCompiled() *cobra.Command {
	var p platform
	var at compiled.At
	cmd := &cobra.Command{
		Use: "compiled", Short: "Answer what serve asks about a compiled environment", Args: cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.open("compiling it",
				func(r compiler.Request) error { return p.compiled(cmd.Context(), r, at) })
		},
	}
	p.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&at.Environment, "env", "", "the `ENVIRONMENT`")
	f.StringVar(&at.Base, "base", "", "the `COMMIT` of the platform")
	f.StringVar(&at.Own, "own", "", "the `COMMIT` of the environment's own files")
	return cmd
}

// compiled answers questions about an environment at the commits of its base and of its own
// files, until stdin ends.
func (p *platform) compiled(ctx context.Context, request compiler.Request,
	at compiled.At) (err error) {
	request.Environments = []string{at.Environment}
	request.Source = &tree.Source{Base: tree.Revision(at.Base), Environment: tree.Revision(at.Own)}
	st, err := session.Open(ctx, p.request(request))
	if err != nil {
		return withDiagnostic(err)
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	policy := st.Platform.Policy(at.Environment)
	if policy == nil {
		return fmt.Errorf("the platform has no environment %s any more", at.Environment)
	}
	dir, remove, err := st.Platform.Assemble(ctx, policy, *request.Source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	request.Dir = dir
	b, err := compiler.Compile(ctx, request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	// The environment's own files come from another commit.
	inBase := func(file string) bool {
		return at.Base == at.Own ||
			!strings.HasPrefix(file, "environments/")
	}
	source, err := viewplatform.New(ctx, b,
		viewplatform.Options{Link: viewplatform.Linker(st.Platform.Repository.URL, os.Getenv, at.Base,
			p.path, inBase)})
	if err != nil {
		return err
	}
	return compiled.Serve(ctx, os.Stdin, os.Stdout, source, at.Environment)
}

// boundFlags are the limits for the processes that read and compile the platform. Several may run
// at once.
type boundFlags struct {
	cpu    time.Duration
	memory string
}

func (c *boundFlags) flags(flags *pflag.FlagSet) {
	flags.DurationVar(&c.cpu, "evaluation-cpu", 0, "how much `TIME` of processors reading and "+
		"compiling an environment may take (else what the base says, or 5m)")
	flags.StringVar(&c.memory, "evaluation-memory", "", "how much memory each process may have that "+
		"reads or compiles the platform, as a `SIZE` such as 4Gi (default: 2Gi, or a quarter of the "+
		"machine's)")
}

// bounds returns the bounds. The platform cannot choose the bound of memory.
func (c *boundFlags) bounds() (supervisor.Bounds, error) {
	const megabyte = 1 << 20
	b := supervisor.Bounds{CPU: c.cpu,
		Memory: min(2<<30, supervisor.Available()/4) / megabyte * megabyte}
	if c.cpu < 0 {
		return b, fmt.Errorf("--evaluation-cpu %s: it is more than nothing, such as 10m", c.cpu)
	}
	if c.memory == "" {
		return b, nil
	}
	q, err := resource.ParseQuantity(c.memory)
	if b.Memory = q.Value(); err != nil || b.Memory <= 0 {
		return b, fmt.Errorf("--evaluation-memory %s: write a size such as 4Gi", c.memory)
	}
	return b, nil
}

// args hands the flags over to a process.
func (c *boundFlags) args() []string {
	return []string{"--evaluation-cpu", c.cpu.String(), "--evaluation-memory", c.memory}
}

// maxAgain is the largest number of trips when a process starts again. Its environment has room
// for them.
const maxAgain = 100

// supervise limits this process. If an evaluation in CUE or the reading of records exceeds a
// limit, the process starts again without that part. Any other use of too much memory ends the
// process, and the error names the work in progress with the text what.
func (c *boundFlags) supervise(what string) (*supervisor.Supervisor, error) {
	bounds, err := c.bounds()
	if err != nil {
		return nil, err
	}
	end := func(err error) {
		fmt.Fprintln(os.Stderr, "kalypso-hub:", err)
		os.Exit(1)
	}
	o := supervisor.Options{Bounds: bounds, Otherwise: what, Fail: func(t supervisor.Trip) { end(&t) },
		Again: func(s supervisor.State) {
			end(fmt.Errorf("cannot begin again: %w", again.With(s)))
		}, Guard: again.Guard}
	// The collector works harder before the system gives no more.
	soft := bounds.Memory / 8 * 7
	debug.SetMemoryLimit(soft)
	o.Ceiling = func(most int64) { debug.SetMemoryLimit(min(most, soft)) }
	if err := again.Begin(&o.State); err != nil {
		return nil, err
	}
	if n := len(o.State.Trips); n > maxAgain {
		end(fmt.Errorf("%d parts of the platform are beyond bounds: %w", n, &o.State.Trips[n-1]))
	}
	return supervisor.New(o), nil
}
