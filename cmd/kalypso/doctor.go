package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/regular"
	"github.com/kalypso-io/kalypso/promotion/forge/detect"
	"github.com/kalypso-io/kalypso/promotion/forge/forges"
)

// check is one thing that kalypso doctor looks at.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok, warning or error
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"` // the steps to take
}

// The statuses of a check.
const (
	checkOK      = "ok"
	checkWarning = "warning" // some commands, or other programs, cannot do all they could
	checkError   = "error"   // kalypso cannot do its work
)

func newDoctor(g author) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at what kalypso needs around it",
		Long: `doctor looks at the machine and at the platform that the folder is in: versions, the
caches, the schema that editors find, the cue command, editors, git's identity, and the
token for the forge of the remote origin. It changes nothing but kalypso's cache and CUE's, as
every build does, and reaches no network.

A warning is about what some commands or other programs need. It ends with 2 if there
is an error.`,
		Args: cobra.NoArgs,
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		checks := g.examine(cmd.Context())
		err := g.print(*output, list[check]{apiVersion, "CheckList", checks}, func(w *tabwriter.Writer) {
			row(w, "CHECK", "STATUS", "DETAIL")
			for _, c := range checks {
				row(w, c.Name, c.Status, c.Detail)
			}
		})
		failed := 0
		for _, c := range checks {
			if c.Hint != "" && *output == "table" {
				fmt.Fprintf(g.err, "hint: %s: %s\n", c.Name, c.Hint)
			}
			if c.Status == checkError {
				failed++
			}
		}
		if failed > 0 {
			err = errors.Join(err, fmt.Errorf("checks with errors: %d", failed))
		}
		return err
	}
	return cmd
}

// examine makes all checks, in the order in which they are shown.
func (g author) examine(ctx context.Context) []check {
	v := compiler.Version()
	checks := []check{
		{"kalypso", checkOK, v.Version, ""},
		{"schema", checkOK, kalypso.ModulePath + " " + kalypso.ModuleVersion, ""},
		checkCache(),
		checkSchema(ctx),
		checkCUE(ctx, v.CUE),
		checkEditors(),
	}
	root, err := source.Root(g.dir)
	if none := (*source.NotAPlatformError)(nil); errors.As(err, &none) {
		checks = append(checks, check{"platform", checkWarning, "none here",
			"name its folder with -C, or let kalypso init write one"})
	} else if err != nil {
		checks = append(checks,
			check{"platform", checkError, err.Error(), "name a platform's folder with -C"})
	} else {
		checks = append(checks, g.checkPlatform(ctx, root)...)
	}
	return append(checks, checkGit(g.dir)...)
}

// checkCache reports whether the cache can be used.
func checkCache() check {
	c, err := cache.Open(cache.Options{Mode: cache.On})
	if err = errors.Join(err, c.Close()); err == nil {
		var dir string
		var bytes int64
		if dir, err = cacheDir(); err == nil {
			bytes, _, err = cache.Size(dir)
		}
		if err == nil {
			return check{"cache", checkOK, fmt.Sprintf("%s, %s", dir, bytesText(bytes)), ""}
		}
	}
	return check{"cache", checkWarning, err.Error(), "without it each build computes everything"}
}

// checkSchema reports whether CUE's module cache has the schema.
func checkSchema(ctx context.Context) check {
	dir, err := cuemodule.CacheDir()
	if err == nil {
		err = cuemodule.EnsureCache(ctx)
	}
	if err != nil {
		return check{"CUE's cache", checkWarning, err.Error(),
			"cue and editors may not find the schema, or another one"}
	}
	return check{"CUE's cache", checkOK, dir + " has the schema", ""}
}

// checkCUE returns the version and path of the cue command, which editors use.
func checkCUE(ctx context.Context, language string) check {
	hint := "cue is for editors and for cue vet; kalypso does not need it: " +
		"https://cuelang.org/docs/introduction/installation/"
	name, err := exec.LookPath("cue")
	if err != nil {
		return check{"cue", checkWarning, "no such command", hint}
	}
	out, err := exec.CommandContext(ctx, name, "version").Output()
	if err != nil {
		return check{"cue", checkWarning, fmt.Sprintf("%s version: %v", name, err), hint}
	}
	first, _, _ := strings.Cut(string(out), "\n")
	version := strings.TrimPrefix(strings.TrimSpace(first), "cue version ")
	if version != language {
		return check{"cue", checkWarning, fmt.Sprintf("%s at %s", version, name),
			"kalypso compiles with CUE " + language + ": another version may judge a platform otherwise"}
	}
	return check{"cue", checkOK, fmt.Sprintf("%s at %s", version, name), ""}
}

// checkEditors reports which of the editors in the documentation are installed.
func checkEditors() check {
	editors := []string{"code", "hx", "nvim"}
	var found []string
	for _, editor := range editors {
		if name, err := exec.LookPath(editor); err == nil {
			found = append(found, editor+" at "+name)
		}
	}
	if len(found) == 0 {
		return check{"editors", checkWarning, "there is no " + listed(editors, "or"),
			"kalypso lsp serves them, and others: docs/editors.md says how"}
	}
	return check{"editors", checkOK, strings.Join(found, ", "),
		"docs/editors.md says how kalypso lsp serves them"}
}

// checkPlatform reports which schema the platform at root pins. It shows the errors in the module
// file that every command finds.
func (g author) checkPlatform(ctx context.Context, root string) []check {
	p, ds, err := source.Open(root)
	if err != nil {
		return []check{{"platform", checkError, err.Error(), "kalypso has to read its files"}}
	}
	if p.Module == kalypso.ModulePath {
		return []check{{"platform", checkWarning, root + " is the repository of kalypso",
			"name a platform's folder with -C, as examples/hello-world"}}
	}
	platform := check{"platform", checkOK, root, ""}
	if _, found, err := compiler.Declarations(ctx, g.request(nil, nil)); err == nil {
		for _, d := range found {
			switch d.Code {
			case diag.Module:
				platform = check{"platform", checkError, d.Message, d.Hint}
			case diag.NoEnvironments:
				platform = check{"platform", checkWarning, d.Message, d.Hint}
			}
		}
	}
	pin := check{"pin", checkOK, "none, and the schema is vendored, or local-module.cue pins it, or " +
		"nothing imports it", ""}
	if p.Module == "" {
		pin = check{"pin", checkError, "cue.mod/module.cue cannot be used", "kalypso vet says why"}
	} else if data,
		err := regular.ReadFile(filepath.Join(root, filepath.FromSlash(cuemodule.File))); err != nil {
		pin = check{"pin", checkError, err.Error(), "kalypso has to read it"}
	} else if found, pinned := cuemodule.PinOf(cuemodule.File, data); pinned {
		pin.Detail = found.Version
	}
	for _, d := range ds {
		switch d.Code {
		case diag.LanguageVersion:
			pin.Status, pin.Hint = checkError, d.Message+": "+d.Hint
		case diag.UnpinnedSchema:
			pin.Status, pin.Detail, pin.Hint = checkWarning, "none", d.Message+": "+d.Hint
		}
	}
	return []check{platform, pin}
}

// checkGit checks the repository around a folder, the identity of the user who promotes from it,
// and the forge of its remote origin.
func checkGit(dir string) []check {
	repo, err := git.Discover(dir)
	if errors.Is(err, git.ErrNoRepository) {
		return []check{{"git", checkWarning, "not in a repository",
			"promotion and --since need commits: git init"}}
	}
	if err != nil {
		return []check{{"git", checkError, err.Error(), "kalypso has to read the repository"}}
	}
	defer repo.Close()
	checks := []check{{"git", checkOK, repo.WorkTree(), ""}}
	if who := userOf(dir); who != "" {
		checks = append(checks, check{"identity", checkOK, who, ""})
	} else {
		checks = append(checks, check{"identity", checkWarning, "none", "say who decides a promotion: " +
			"git config --global user.name NAME, and user.email ADDRESS"})
	}
	return append(checks, checkForge(repo.RemoteURL("origin")))
}

// tokens describe how to set the token for each kind of forge.
var tokens = map[string]string{
	detect.GitHub: "set GH_TOKEN, or run gh auth login",
	detect.GitLab: "set GITLAB_TOKEN",
	detect.Gitea:  "set GITEA_TOKEN or FORGEJO_TOKEN",
}

// checkForge reports whether there is a token for the forge of a remote. Only the forge knows
// whether it accepts the token.
func checkForge(remote string) check {
	if remote == "" {
		return check{"forge", checkWarning, "no remote origin", "promotion by pull request needs a " +
			"forge: git remote add origin URL"}
	}
	kind, base, _, err := detect.Detect(remote, os.Getenv, "")
	if err != nil {
		return check{"forge", checkWarning, credential.Hide(err.Error()),
			"correct the URL of the remote origin"}
	}
	if kind == detect.None {
		return check{"forge", checkOK, "none known at " + credential.Hide(remote), ""}
	}
	name := base
	if u, err := url.Parse(base); err == nil {
		name = u.Host
	}
	if !forges.HasToken(kind, name) {
		return check{"forge", checkWarning, kind + " at " + name + ", and no token for it", tokens[kind]}
	}
	return check{"forge", checkOK, kind + " at " + name + ", with a token", ""}
}
