package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/cli/go-gh/v2/pkg/prompter"
	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"

	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/cueformat"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/scratch"
	"github.com/kalypso-io/kalypso/internal/starter"
)

// initOptions are the argument and the flags of init.
type initOptions struct {
	starter.Platform
	dir      string // "" for the working directory
	app, yes bool
}

func newInit(g author) *cobra.Command {
	o := initOptions{}
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write the first files of a platform, or of an application",
		Long: `init writes a small platform into DIR, or into the working directory: environments,
a cluster type in each, a workload, a policy and configs, with comments that say what
each is, and workflows for CI. It builds as it is.

With --app it writes the repository of an application, for kalypso project and kalypso
promote: a chart, values for a target of each environment, the contract on them, and
workflows that check pull requests and promote.

On a terminal it asks for what no flag says; --yes takes the defaults. With --rollout it
says who reports whether clusters run a commit, which the next environment waits for; by
default no one does, and nothing waits. It prints the commands that build, commit and
promote what it wrote: without --gitops, to a repository on this machine that stands for
the GitOps repository.

Files that are there already are not changed. README.md, .gitignore, .editorconfig, CODEOWNERS
and the settings of editors may be there; with any other in the way, or with CUE files beside
them that cannot be parsed, nothing is written.`,
		Example: "  kalypso init shop --reconciler argocd --environments dev,prod\n  kalypso init " +
			"store --app",
		Args: arity(0, 1, "init takes one folder, and not %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.app && cmd.Flags().Changed("reconciler") {
				return usagef("--reconciler is for platforms: an application's tree is the same for all of " +
					"them; leave it out, or --app")
			}
			o.dir = strings.Join(args, "")
			if !o.yes {
				if _, err := g.ask(cmd.Context(), func(p *prompter.Prompter) error {
					return o.ask(p, cmd.Flags().Changed, g.err)
				}, g.out); err != nil {
					return fmt.Errorf("nothing is written: %w", err)
				}
			}
			o.dir = cmp.Or(o.dir, ".")
			dir := g.path(o.dir)
			repository, err := g.init(cmd.Context(), dir, o.dir, o.Platform, o.app)
			if err != nil {
				return err
			}
			return g.printNext(dir, o.dir, repository, o.app)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "the `NAME` of the platform or application, in addresses too "+
		"(else that of its folder)")
	f.BoolVar(&o.app, "app", false, "write an application's own repository, and no platform")
	f.StringSliceVar(&o.Environments, "environments", []string{"dev", "stage", "prod"},
		"the `NAMES` of the environments, in the order in which commits come to them")
	f.StringVar(&o.Reconciler.Name, "reconciler", reconcilerNames()[0],
		"how clusters receive what is "+
			"assigned to them: "+strings.Join(reconcilerNames(), ", "))
	f.StringVar(&o.GitOps, "gitops", "",
		"the `URL` of the repository for the trees (else one to be replaced)")
	choiceFlag(cmd, f, &o.Rollout, "rollout", "", "who reports whether clusters run a commit, so "+
		"that it may go on", starter.Rollouts...)
	f.StringVar(&o.CI, "ci", starter.CIs[0],
		"where the workflows are for: "+strings.Join(starter.CIs, ", "))
	f.BoolVarP(&o.yes, "yes", "y", false, "take the defaults, and ask nothing")
	completeFlag(cmd, "name", cobra.NoFileCompletions)
	completeFlag(cmd, "reconciler", values(reconcilerNames()...))
	completeFlag(cmd, "ci", values(starter.CIs...))
	return cmd
}

// init writes a platform or an application into a folder, and returns its files. called is the
// name of the folder as the user wrote it.
func (g author) init(ctx context.Context, dir, called string, p starter.Platform,
	app bool) (of starter.Repository, err error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return of, usagef("%s is not a folder", called)
	}
	if p.Name == "" {
		name, err := nameOf(dir)
		if err != nil {
			return of, err
		}
		p.Name = name
	}
	if err := cmp.Or(checkStart(p), checkGitOps(ctx, p.GitOps)); err != nil {
		return of, err
	}
	p.Reconciler = reconciler(p.Reconciler.Name)
	if v := compiler.Version().Version; isRelease(v) {
		p.Release = v
	}
	write := p.Files
	if app {
		write = starter.App{Repository: p.Repository}.Files
	}
	files, err := write()
	if err != nil {
		return of, err
	}
	if err := g.checkCUE(dir, called); err != nil {
		return of, err
	}
	missing, foreign, err := notYet(dir, files)
	if err != nil {
		return of, err
	}
	if app {
		foreign = append(foreign, applications(dir, files)...)
	}
	if len(foreign) > 0 {
		return of, fmt.Errorf("%s has %s already: nothing is written; move what is there away, or name "+
			"a new folder", called, strings.Join(foreign, ", "))
	}
	for _, f := range missing {
		name := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := writeNew(name, f.Data); err != nil {
			return of, err
		}
		fmt.Fprintln(g.out, filepath.ToSlash(filepath.Join(called, filepath.FromSlash(f.Path))))
	}
	return p.Repository, nil
}

// reconcilerNames returns the reconcilers that a platform can begin with: one of each backend,
// the default first.
func reconcilerNames() (out []string) {
	for _, b := range all.List() {
		out = append(out, b.Name())
	}
	return out
}

// reconciler returns the reconciler of a name in reconcilerNames, as a new platform needs it.
func reconciler(name string) starter.Reconciler {
	traits := all.Backends()[name].Traits()
	return starter.Reconciler{Name: name, Machines: traits.Machines, Pulls: traits.Bootstraps != ""}
}

// checkStart returns an error if a new platform, or a new application, would not be valid.
func checkStart(p starter.Platform) error {
	if !model.IsName(p.Name) {
		return usagef("--name %q: a name is lower case letters, digits and dashes", p.Name)
	}
	if err := checkEnvironments(p.Environments); err != nil {
		return usagef("--environments: %w", err)
	}
	if names := reconcilerNames(); !slices.Contains(names, p.Reconciler.Name) {
		return usagef("--reconciler %s: there are %s", p.Reconciler.Name, strings.Join(names, ", "))
	}
	if !slices.Contains(starter.CIs, p.CI) {
		return usagef("--ci %s: there are %s", p.CI, strings.Join(starter.CIs, ", "))
	}
	return nil
}

// checkGitOps reports a repository for the trees that no platform may name, as compiling one
// that does reports it.
func checkGitOps(ctx context.Context, url string) (err error) {
	if url == "" {
		return nil
	}
	p := starter.Platform{Repository: starter.Repository{Name: "platform",
		Environments: []string{"dev"}, GitOps: url, CI: "none"},
		Reconciler: reconciler(reconcilerNames()[0])}
	files, err := p.Files()
	if err != nil {
		return err
	}
	dir, remove, err := scratch.Dir("init")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	for _, f := range files {
		if err := writeNew(filepath.Join(dir, filepath.FromSlash(f.Path)), f.Data); err != nil {
			return err
		}
	}
	_, ds, err := compiler.Declarations(ctx, compiler.Request{Dir: dir})
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(ds,
		func(d diag.Diagnostic) bool { return d.Severity == diag.Error }); i >= 0 {
		return usagef("--gitops: %s; %s", ds[i].Message, ds[i].Hint)
	}
	return nil
}

func checkEnvironments(names []string) error {
	if len(names) == 0 {
		return errors.New("name one at least")
	}
	for i, e := range names {
		if !model.IsName(e) {
			return fmt.Errorf("%q is no name: it has lower case letters, digits and dashes", e)
		}
		if slices.Contains(names[:i], e) {
			return fmt.Errorf("%s is there twice", e)
		}
	}
	return nil
}

// nameOf derives a platform's name from the name of its folder.
func nameOf(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(filepath.Base(abs)), "-")
	if name = strings.Trim(name[:min(len(name), model.MaxLabel)], "-"); name == "" {
		return "platform", nil
	}
	return name, nil
}

// mayStay are the files that people have before they have a platform.
var mayStay = []string{".editorconfig", ".github/CODEOWNERS", ".gitignore",
	".vscode/extensions.json", ".vscode/settings.json", "README.md"}

// applications returns the files of a folder that make it an application's, and are not to be
// written.
func applications(dir string, files []starter.File) (names []string) {
	for _, name := range source.ApplicationMarker.Files {
		ours := slices.ContainsFunc(files, func(f starter.File) bool { return f.Path == name })
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil && !ours {
			names = append(names, name)
		}
	}
	return names
}

// checkCUE reports CUE files in a folder that cannot be parsed and that would become part of the
// new platform.
func (g author) checkCUE(dir, called string) error {
	var there []string
	for _, pattern := range []string{"*.cue", source.Environments + "/*/*.cue"} {
		names, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return err
		}
		there = append(there, names...)
	}
	f := &formatter{platform: g.platform}
	for _, name := range there {
		if _, err := cueformat.Read(filepath.Join(dir, filepath.FromSlash(name))); err != nil &&
			!errors.Is(err, cueformat.ErrLink) {
			f.failed(path.Join(filepath.ToSlash(called), name), err)
		}
	}
	if len(f.ds) == 0 {
		return f.err
	}
	for i := range f.ds {
		f.ds[i] = f.ds[i].Hinting("correct the file, or move it away: nothing is written beside it")
	}
	return errors.Join(g.report(g.err, f.ds), errPlatform)
}

// notYet returns the missing files, and the names of the files that exist with other contents.
func notYet(dir string, files []starter.File) (missing []starter.File, foreign []string,
	err error) {
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Path))
		data, err := os.ReadFile(name)
		switch {
		case err == nil && (bytes.Equal(data, f.Data) || slices.Contains(mayStay, f.Path)):
		case err == nil:
			foreign = append(foreign, f.Path)
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, f)
		default:
			return nil, nil, err
		}
	}
	return missing, foreign, nil
}

// writeNew writes a file that does not exist yet, and creates its folders.
func writeNew(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// command is a line that init prints for the user to run.
type command struct{ line, comment string }

// printNext prints the commands that build, commit and promote a new platform or application.
// Without values in capitals, they work as they are, one after the other, in a POSIX shell.
func (g author) printNext(dir, called string, r starter.Repository, app bool) error {
	var first, promote []command
	if called != "." {
		folder, err := syntax.Quote(called, syntax.LangPOSIX)
		if err != nil {
			return fmt.Errorf("no shell can take the name of the folder %q: %w", called, err)
		}
		first = append(first, command{line: "cd " + folder})
	}
	if app {
		first = append(first, command{"kalypso project --to out", "render the targets, and look at out/"})
	} else {
		first = append(first,
			command{"kalypso build --to out", "compile the environments, and look at out/"},
			command{"kalypso get assignments", "what runs where"})
	}
	commit, outside, err := commitCommands(dir, r.Name, app)
	if err != nil {
		return err
	}
	if r.GitOps == "" {
		bare := outside + "/" + r.Name + "-gitops.git"
		promote = append(promote,
			command{line: "git init --quiet --bare " + bare},
			command{line: `git config url."file://$PWD/` + bare + `".insteadOf ` + r.PlaceholderGitOps()})
	}
	promote = append(promote,
		command{"kalypso promote --all" + r.PromoteFlags(), "to " + strings.Join(r.Environments, ", ")})
	fmt.Fprintln(g.err, "\nNext:")
	if err := g.printCommands(slices.Concat(first, commit)); err != nil {
		return err
	}
	if r.GitOps == "" {
		fmt.Fprintf(g.err, "\nTo try promotion on this machine, let a repository beside this one stand "+
			"for %s:\n", r.PlaceholderGitOps())
	} else {
		fmt.Fprintf(g.err, "\nTo promote, create %s, and run:\n", r.GitOps)
	}
	return g.printCommands(promote)
}

// commitCommands returns the commands that commit a new folder, so that promote finds the commit.
// It also returns the path from there to the folder around the repository.
func commitCommands(dir, name string, app bool) (commit []command, outside string, err error) {
	kind := "platform"
	if app {
		kind = "application"
	}
	commit = []command{
		{line: "git add --all ."},
		{line: fmt.Sprintf("git commit --quiet --message %q", "Begin the "+kind+" "+name)},
	}
	repo, err := git.Discover(dir)
	if errors.Is(err, git.ErrNoRepository) {
		return slices.Insert(commit, 0, command{line: "git init --quiet --initial-branch main"}), "..",
			nil
	}
	if err != nil {
		return nil, "", err
	}
	defer repo.Close()
	if repo.RemoteURL("origin") != "" {
		commit = append(commit, command{line: "git push --set-upstream origin HEAD"})
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		outside, err = filepath.Rel(dir, filepath.Dir(repo.WorkTree()))
	}
	return commit, filepath.ToSlash(outside), err
}

// printCommands prints commands on stderr, with their comments below each other.
func (g author) printCommands(commands []command) error {
	w := tabwriter.NewWriter(g.err, 0, 0, 3, ' ', 0)
	for _, c := range commands {
		if c.comment == "" {
			fmt.Fprintf(w, "  %s\n", c.line)
			continue
		}
		fmt.Fprintf(w, "  %s\t# %s\n", c.line, c.comment)
	}
	return w.Flush()
}

// ask asks the user for everything that the flags and the argument do not specify. given reports
// whether a flag is set. ask rejects an invalid answer, and repeats the question.
func (o *initOptions) ask(p *prompter.Prompter, given func(flag string) bool,
	told io.Writer) error {
	if !given("app") && !given("reconciler") {
		kind, err := p.Select("What do you begin?", "",
			[]string{"a platform: what runs where, with which configuration", "an application: its own " +
				"repository, for any platform"})
		if err != nil {
			return err
		}
		o.app = kind == 1
	}
	if o.dir == "" {
		dir, err := p.Input("In which folder?", ".")
		if err != nil {
			return err
		}
		o.dir = dir
	}
	if !given("environments") {
		if err := o.askEnvironments(p, told); err != nil {
			return err
		}
	}
	if !o.app && !given("reconciler") {
		i, err := p.Select("How do clusters receive what is assigned to them?", o.Reconciler.Name,
			reconcilerNames())
		if err != nil {
			return err
		}
		o.Reconciler.Name = reconcilerNames()[i]
	}
	if !given("rollout") {
		i, err := p.Select("Who reports whether clusters run a commit, so that it may go on?", "",
			rolloutAnswers)
		if err != nil {
			return err
		}
		o.Rollout = starter.Rollouts[i]
	}
	return nil
}

// rolloutAnswers describe each of starter.Rollouts.
var rolloutAnswers = []string{
	"no one yet: a commit goes on at once, and you name a source later",
	"a hub, with promote --hub URL",
	"Flux or Argo CD, as commit statuses in the GitOps repository",
	"the clusters, with promote --kubeconfig FILE",
	"files, with promote --report FOLDER",
}

// askEnvironments asks for the environments until the answer is valid.
func (o *initOptions) askEnvironments(p *prompter.Prompter, told io.Writer) error {
	usual := strings.Join(o.Environments, ", ")
	for {
		text, err := p.Input("Which environments, in the order in which commits come to them?", usual)
		if err != nil {
			return err
		}
		o.Environments = strings.FieldsFunc(text,
			func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
		err = checkEnvironments(o.Environments)
		if err == nil {
			return nil
		}
		fmt.Fprintf(told, "%v\n", err)
	}
}
