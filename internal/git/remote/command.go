package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/regular"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// command accesses a repository through git's own command, which reads its configuration,
// runs its credential helpers and runs ssh itself.
type command struct {
	url   string // without credentials
	login login  // of the URL
}

var _ backend = (*command)(nil)

func (r *Remote) connectCommand(ctx context.Context, url string) error {
	endpoint, err := parse(url)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("the repository is to be reached by git, which is not installed")
	}
	c := &command{url: r.url}
	if filepath.IsAbs(r.url) {
		c.url = url
	}
	if endpoint.Password != "" || endpoint.Protocol != "ssh" {
		r.secrets.Add(endpoint.Password)
		c.login = login{endpoint.User, endpoint.Password}
	}
	r.backend = c
	_, err = r.ask(ctx)
	return err
}

// helper is a credential helper that reads the environment: other users can see the
// arguments of a process, and not its environment.
const helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$KALYPSO_GIT_USERNAME" "$KALYPSO_GIT_PASSWORD"; }; f`

// grace is the time that git has to end after an interrupt.
const grace = 5 * time.Second

// run runs git, and returns its output and its messages.
func (c *command) run(ctx context.Context, dir, stdin string, args ...string) (stdout,
	stderr string, err error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = c.environment()
	cmd.WaitDelay = grace
	endTogether(cmd)
	out, messages := &limitBuffer{most: maxRefs}, &limitBuffer{most: maxMessages}
	cmd.Stdout, cmd.Stderr = out, messages
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", "", ctx.Err()
		}
		return out.String(), messages.String(), err
	}
	return out.String(), messages.String(), nil
}

// environment is the environment of git: without variables that name another repository,
// without prompts on the terminal, and in English, because messages are parsed.
func (c *command) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{
			"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
			"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR",
			"GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_QUARANTINE_PATH", "GIT_PREFIX",
			"GIT_PUSH_OPTION_COUNT", "LANGUAGE", "LANG",
		}, name) || strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "GIT_TRACE")
	})
	env = append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "SSH_ASKPASS=", "SSH_ASKPASS_REQUIRE=never")
	switch {
	case c.login.password == "" && c.login.username != "":
		env = append(env, configured("credential.username", c.login.username)...)
	case c.login.password != "":
		env = append(env, "KALYPSO_GIT_USERNAME="+c.login.username,
			"KALYPSO_GIT_PASSWORD="+c.login.password)
	}
	return env
}

// settings are git's options in each call. They disable the settings of the user that change the
// result: hooks, signatures, push options and tags, and colours in parsed output.
func (c *command) settings() []string {
	// An empty header removes headers without a URL, and keeps headers of a URL (git-config(1)).
	out := []string{
		"-c", "protocol.ext.allow=never", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
		"-c", "core.hooksPath=" + os.DevNull, "-c", "push.pushOption=", "-c", "color.ui=false", "-c",
		"http.extraHeader=",
	}
	if c.login.password != "" {
		out = append(out, "-c", "credential.helper=", "-c", "credential.helper="+helper)
	}
	return out
}

func (c *command) advertised(ctx context.Context) (*advertisement, error) {
	out, messages, err := c.run(ctx, "", "",
		append(c.settings(), "ls-remote", "--symref", "--", c.url)...)
	if err != nil {
		return nil, c.explain(messages, err)
	}
	a := &advertisement{
		refs: map[string]git.Hash{}, peeled: map[string]git.Hash{},
		// git supports each of these, or reports that it does not.
		anyID: true, ids: true, filter: true, shallow: true,
	}
	for line := range strings.Lines(out) {
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		target, isSymbolic := strings.CutPrefix(id, "ref: ")
		switch {
		case isSymbolic && name == "HEAD" && isRef(target):
			a.head = target
		case len(id) == 64:
			return nil, git.ErrSHA256
		case !plumbing.IsHash(id):
			continue
		case isRef(name):
			a.refs[name] = plumbing.NewHash(id)
		}
		if tag, isPeeled := strings.CutSuffix(name, "^{}"); isPeeled && isRef(tag) {
			a.peeled[tag] = plumbing.NewHash(id)
		}
	}
	a.cut, err = c.cut()
	return a, err
}

// cut returns the commits at which the history of a local clone ends, which ls-remote does
// not report.
func (c *command) cut() ([]git.Hash, error) {
	dir := strings.TrimPrefix(c.url, "file://")
	if !filepath.IsAbs(dir) {
		return nil, nil
	}
	r, err := git.Open(dir)
	if err != nil {
		return nil, nil // git accepts more names of a folder
	}
	ids, err := r.Shallow()
	return ids, errors.Join(err, r.Close())
}

func (c *command) get(ctx context.Context, s *store, w want) error {
	args := c.settings()
	if w.alone {
		args = append(args, "-c", "fetch.negotiationAlgorithm=noop")
	}
	args = append(args, "fetch", "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head",
		"--recurse-submodules=no", "--update-shallow", "--stdin")
	if w.whole {
		args = append(args, "--no-filter")
	} else {
		args = append(args, "--filter=blob:none")
	}
	shallow, err := s.shallow()
	if err != nil {
		return err
	}
	switch {
	case w.depth > 0:
		args = append(args, fmt.Sprint("--depth=", w.depth))
	case len(shallow) > 0 && !w.alone:
		args = append(args, "--unshallow")
	}
	if w.alone && w.whole {
		args = append(args, "--refetch")
	}
	var ids strings.Builder
	for _, id := range w.ids {
		ids.WriteString(id.String() + "\n")
	}
	// The remote of the store is the repository; git changes the shallow file too.
	return s.locked(func() error {
		_, messages, err := c.run(ctx, s.dir, ids.String(), append(args, "origin")...)
		if err == nil || ctx.Err() != nil {
			return err
		}
		return errors.Join(errRefused, c.explain(messages, err))
	})
}

func (c *command) push(ctx context.Context, p *proposal) (*report, error) {
	latest, err := c.advertised(ctx)
	if err != nil {
		return nil, err
	}
	return p.send(latest.refs, func(rest *proposal) (*report, error) { return c.send(ctx, rest) })
}

func (c *command) send(ctx context.Context, p *proposal) (*report, error) {
	// A thin pack would be made with files of earlier commits, which were left with the
	// server.
	args := append(c.settings(), "push", "--porcelain", "--no-verify", "--no-signed",
		"--no-follow-tags", "--quiet", "--no-thin", "--recurse-submodules=no")
	if p.atomic {
		args = append(args, "--atomic")
	}
	for _, u := range p.updates {
		// The lease with an empty id is that the ref must not exist.
		old := ""
		if !u.Old.IsZero() {
			old = u.Old.String()
		}
		args = append(args, "--force-with-lease="+u.Ref+":"+old)
	}
	args = append(args, "--", c.url)
	for _, u := range p.updates {
		id := ""
		if !u.New.IsZero() {
			id = u.New.String()
		}
		args = append(args, id+":"+u.Ref)
	}
	if err := copyShallow(p.staging); err != nil {
		return nil, err
	}
	out, messages, err := c.run(ctx, p.staging, "", args...)
	if err == nil || ctx.Err() != nil {
		return accepted(p), err
	}
	if strings.Contains(messages, "does not support --atomic") {
		return nil, ErrNoAtomic
	}
	answer := readPorcelain(out, messages)
	if len(answer.status) == 0 {
		return nil, c.unknownResult(messages, err)
	}
	return answer, nil
}

func accepted(p *proposal) *report {
	out := &report{unpack: done, status: map[string]string{}}
	for _, u := range p.updates {
		out.status[u.Ref] = done
	}
	return out
}

// copyShallow copies to a borrowing repository at which commits histories are cut.
func copyShallow(dir string) error {
	text, err := regular.ReadFile(filepath.Join(dir, "objects", "info", "alternates"))
	if err != nil {
		return err
	}
	store := filepath.Dir(strings.TrimSpace(string(text)))
	shallow, err := regular.ReadFile(filepath.Join(store, "shallow"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, "shallow"), string(shallow))
}

// readPorcelain parses the output of git push: a flag, FROM:TO, and a summary with the
// reason in parentheses, separated by tabs (git-push(1)).
func readPorcelain(out, messages string) *report {
	answer := &report{unpack: done, status: map[string]string{}}
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(fields) != 3 {
			continue
		}
		_, ref, _ := strings.Cut(fields[1], ":")
		status := done
		if fields[0] == "!" {
			status = fields[2]
			if at := strings.IndexByte(status, '('); at >= 0 {
				status = strings.TrimSuffix(status[at+1:], ")")
			}
		}
		answer.status[ref] = status
	}
	var remote []string
	for line := range strings.Lines(messages) {
		if text, ok := strings.CutPrefix(line, "remote:"); ok {
			remote = append(remote, strings.TrimSpace(text))
		}
	}
	answer.messages = withoutProgress(strings.Join(remote, "\n"))
	return answer
}

// explain returns the error for messages of git.
func (c *command) explain(messages string, err error) error {
	says := func(texts ...string) bool { return saysOneOf(messages, texts) }
	host := terminal.Line(c.url)
	switch {
	case says("authentication failed", "could not read username", "could not read password",
		"terminal prompts disabled", "permission denied (", "error: 401"):
		return &AuthError{Problem: host + " does not accept the credentials that git has for it",
			Hint: "`git ls-remote " + c.url + "`, run in a terminal, shows what the server wants"}
	case says("error: 403"):
		return &AuthError{Problem: host + " answers 403 Forbidden", Hint: "git's credentials for the " +
			"host are not allowed to do this: an account or a token is needed that may"}
	case says("host key verification failed"):
		return &AuthError{Problem: "ssh does not know the key of the host, or knows another one",
			Hint: "`ssh` to the host, run once, shows its key and adds it"}
	case says("not found", "does not appear to be a git repository", "does not exist"):
		return &NotFoundError{Problem: "there is no such repository, or it is not to be seen without " +
			"other credentials"}
	case says("mismatched algorithms", "object format"):
		return git.ErrSHA256
	}
	return fmt.Errorf("git says: %s: %w", strings.TrimSpace(withoutProgress(messages)), err)
}

// unknownResult distinguishes a push that failed before anything was sent from one whose
// answer was lost.
func (c *command) unknownResult(messages string, err error) error {
	explained := c.explain(messages, err)
	if isAny[*AuthError](explained) || isAny[*NotFoundError](explained) {
		return explained
	}
	return errors.Join(errUnknownResult, explained)
}
