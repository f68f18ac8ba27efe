package promotion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// platform is the repository of the platform, or of the application, as it is at the
// head of its branch.
type platform struct {
	repository *repository
	branch     string
	path       string // of the platform in the repository
	subject    Subject
	head       git.Hash
	stages     []evaluate.Stage
	bases      *bases
	// allowedSigners say whose signatures count; nil for nobody's.
	allowedSigners []byte
}

func (s *sessionState) openPlatform(ctx context.Context) (*platform, error) {
	repo, err := s.opener.repository(ctx, s.request.Repository)
	if err != nil {
		return nil, err
	}
	p := &platform{repository: repo, branch: s.request.Branch, path: path.Clean(s.request.Path)}
	if p.branch == "" {
		p.branch = repo.defaultBranch()
	}
	var ok bool
	if p.head, ok = repo.refs[branchRef(p.branch)]; !s.request.Head.IsZero() {
		p.head = s.request.Head
	} else if !ok {
		return nil, fmt.Errorf("%s has no branch %s, so there is nothing to promote from; name another one with --from", repo.url, p.branch)
	}
	if err := repo.remote.Fetch(ctx, []git.Hash{p.head}, 0); err != nil {
		return nil, err
	}
	if p.subject, err = p.subjectOf(s.request.Subjects); err != nil {
		return nil, err
	}
	if p.allowedSigners, err = p.file(ctx, allowedSignersFile); err != nil {
		return nil, err
	}
	dir, remove, err := p.assemble(ctx, p.head, nil)
	if err != nil {
		return nil, err
	}
	stages, ds, err := p.subject.Stages(ctx, dir)
	if err = errors.Join(err, remove()); err != nil {
		return nil, err
	}
	s.Diagnostics = ds
	sick := slices.ContainsFunc(stages, func(s evaluate.Stage) bool { return s.Sick })
	if stages == nil || sick || diag.Errors(ds) {
		return nil, &PlatformError{What: p.subject.Form().What, Commit: git.Short(p.head), Diagnostics: ds}
	}
	p.stages = stages
	if err := p.readSources(ctx); err != nil {
		return nil, err
	}
	p.bases = basesOf(p.history(p.head))
	return p, nil
}

// readSources gives the environments whose own files are in another branch the rings that
// those have.
func (p *platform) readSources(ctx context.Context) error {
	owns := map[string]source.Own{}
	for i := range p.stages {
		if p.stages[i].Promotion.Source == nil {
			continue
		}
		// What cannot be read is told when the environment's tree is.
		if own, err := p.own(ctx, &p.stages[i]); err == nil && !own.Commit.IsZero() {
			owns[p.stages[i].Name] = own
		}
	}
	if len(owns) == 0 {
		return nil
	}
	dir, remove, err := p.assemble(ctx, p.head, owns)
	if err != nil {
		return err
	}
	stages, _, err := p.subject.Stages(ctx, dir)
	for _, of := range stages {
		if _, elsewhere := owns[of.Name]; elsewhere {
			stage := p.stage(of.Name)
			stage.Promotion.Rings, stage.NoRings = of.Promotion.Rings, of.NoRings
		}
	}
	return errors.Join(err, remove())
}

// subjectOf returns the first of some subjects that the head is one of.
func (p *platform) subjectOf(subjects []Subject) (Subject, error) {
	var wanted []string
	for _, s := range subjects {
		form := s.Form()
		is, err := form.At(p.repository.remote.Objects(), p.head, p.path)
		if err != nil {
			return nil, err
		}
		if is {
			return s, nil
		}
		wanted = append(wanted, fmt.Sprintf("no %s (%s)", form.What, strings.Join(form.Files, " or ")))
	}
	where := "the root"
	if p.path != "." {
		where = "folder " + p.path
	}
	return nil, fmt.Errorf("%s of %s has at commit %s %s; name another folder with --path, or another branch with --from",
		where, p.repository.url, git.Short(p.head), strings.Join(wanted, " and "))
}

// file returns a file of the platform at the head; nil where there is none.
func (p *platform) file(ctx context.Context, name string) ([]byte, error) {
	objects := p.repository.remote.Objects()
	root, err := objects.CommitTree(p.head)
	if err != nil {
		return nil, err
	}
	e, found, err := objects.Find(root, path.Join(p.path, name))
	if err != nil || !found || e.Mode != git.FileMode {
		return nil, err
	}
	return objects.Blob(e.ID)
}

func (p *platform) stage(name string) *evaluate.Stage {
	for i := range p.stages {
		if p.stages[i].Name == name {
			return &p.stages[i]
		}
	}
	return nil
}

// assemble writes the platform of a base commit into a temporary folder.
func (p *platform) assemble(ctx context.Context, of git.Hash, own map[string]source.Own) (string, func() error, error) {
	return source.Assemble(ctx, source.Assembly{
		Repository: p.repository.remote.Objects(), Marker: p.subject.Form().Marker, Base: of, Path: p.path, Own: own, Prefetch: p.repository.remote.Prefetch,
	})
}

// own returns where an environment's own files are at the platform's head: E. Its
// commit is the newest that changed them; zero where they never were.
func (p *platform) own(ctx context.Context, stage *evaluate.Stage) (source.Own, error) {
	if from := stage.Promotion.Source; from != nil {
		head := p.headOf(from.Branch)
		if head.IsZero() {
			return source.Own{}, fmt.Errorf("%s has no branch %s, which environments.%s.source names", p.repository.url, from.Branch, stage.Name)
		}
		if err := p.repository.remote.Fetch(ctx, []git.Hash{head}, 0); err != nil {
			return source.Own{}, err
		}
		commit, err := p.history(head).Newest(from.Path)
		return source.Own{Commit: commit, Path: from.Path}, err
	}
	folder := p.ownPath(stage)
	commit, err := p.history(p.head).Newest(folder)
	return source.Own{Commit: commit, Path: folder}, err
}

// headOf is the head of a branch; zero where there is none. A clone that was made of one
// commit, as in CI, knows the others as branches of origin.
func (p *platform) headOf(branch string) git.Hash {
	if head := p.repository.refs[branchRef(branch)]; !head.IsZero() {
		return head
	}
	return p.repository.refs["refs/remotes/origin/"+branch]
}

// ownPath is the folder that an environment's own files are in.
func (p *platform) ownPath(stage *evaluate.Stage) string {
	if stage.Promotion.Source != nil {
		return stage.Promotion.Source.Path
	}
	return p.history(p.head).OwnPath(stage.Name)
}

// history is the platform's branch, at one of its commits.
func (p *platform) history(head git.Hash) source.History {
	return source.History{Repository: p.repository.remote.Objects(), Head: head, Path: p.path}
}

// historyOf is the head of a branch, with its history; zero where there is none.
func (p *platform) historyOf(ctx context.Context, branch string) (git.Hash, error) {
	if branch == p.branch {
		return p.head, nil
	}
	head := p.headOf(branch)
	if head.IsZero() {
		return head, nil
	}
	return head, p.repository.remote.Fetch(ctx, []git.Hash{head}, 0)
}

// newest is which of two commits of an environment's own files is the newer one in the
// history of their branch; false where that has none of them.
func (p *platform) newest(ctx context.Context, stage *evaluate.Stage, a, b git.Hash) (git.Hash, bool, error) {
	branch := p.branch
	if from := stage.Promotion.Source; from != nil {
		branch = from.Branch
	}
	head, err := p.historyOf(ctx, branch)
	if err != nil || head.IsZero() {
		return head, false, err
	}
	for at, err := range p.repository.remote.Objects().Mainline(head) {
		if err != nil || at.ID == a || at.ID == b {
			return at.ID, err == nil, err
		}
	}
	return git.Hash{}, false, nil
}

// has says whether a commit is in the history of a branch.
func (p *platform) has(ctx context.Context, branch string, commit git.Hash) (bool, error) {
	head, err := p.historyOf(ctx, branch)
	if err != nil || head.IsZero() {
		return false, err
	}
	for at, err := range p.repository.remote.Objects().Mainline(head) {
		if err != nil || at.ID == commit {
			return err == nil, err
		}
	}
	_, merged, err := mergedInto(p.repository.remote.Objects(), head, commit)
	return merged, err
}

// resolve returns the base commit that a name means: HEAD, which is that of the branch, a
// branch, a tag, an id or the beginning of one, and ~N behind it for the Nth before.
func (p *platform) resolve(full string) (source.Base, error) {
	name, back, counts := strings.Cut(full, "~")
	n, err := strconv.Atoi(cmp.Or(back, "1"))
	if counts && (err != nil || n < 0) {
		return source.Base{}, fmt.Errorf("%s is no name of a commit: write ~N for the Nth before it", full)
	}
	if !counts {
		n = 0
	}
	id, found := p.refOrID(name), false
	for at, err := range p.repository.remote.Objects().Mainline(p.head) {
		if err != nil {
			return source.Base{}, err
		}
		if found = found || at.ID == id || len(name) >= 7 && strings.HasPrefix(at.ID.String(), name); !found {
			continue
		}
		if n--; n < 0 {
			if b, err := p.history(at.ID).Base(); err != nil || !b.Commit.IsZero() {
				return b, err
			}
			break
		}
	}
	return source.Base{}, fmt.Errorf("%s is no commit of branch %s of %s: only what is in its history can be promoted", full, p.branch, p.repository.url)
}

func (p *platform) refOrID(name string) git.Hash {
	if name == "HEAD" {
		return p.head
	}
	for _, ref := range []string{"refs/heads/" + name, "refs/tags/" + name, name} {
		if id, ok := p.repository.refs[ref]; ok {
			return id
		}
	}
	if tree.Revision(name).IsCommit() {
		return tree.Revision(name).Hash()
	}
	return git.Hash{}
}

// compile compiles a stop at some commits. What it gives is made of a temporary folder,
// which remove deletes. back is that of CompileRequest.
func (p *platform) compile(ctx context.Context, st *stop, of tree.Source, back bool) (out *Compiled, remove func() error, err error) {
	var own map[string]source.Own
	if of.Environment != "" {
		own = map[string]source.Own{st.stage.Name: {Commit: of.Environment.Hash(), Path: p.ownPath(st.stage)}}
	}
	dir, remove, err := p.assemble(ctx, of.Base.Hash(), own)
	if err != nil {
		return nil, nil, err
	}
	r := CompileRequest{Dir: dir, Environment: st.stage.Name, Source: of, Previous: st.out.record, Back: back}
	if st.ring != nil {
		r.Ring, r.Rings = st.ring.Name, st.stage.Promotion.Rings
	}
	if out, err = p.subject.Compile(ctx, r); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return out, remove, nil
}
