package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/subject"
)

// allowedSignersFile is the file with the keys whose signatures count, in the format of
// ssh-keygen(1).
const allowedSignersFile = ".kalypso/allowed_signers"

// Platform is the repository of the platform, or of the application, as it is at the
// head of its branch.
type Platform struct {
	Repository *Repository
	Branch     string
	path       string // of the platform in the repository
	Subject    subject.Subject
	Head       git.Hash
	Policies   []model.Declaration
	// Lacks are the diagnostics of the base if it declares no environments.
	Lacks []diag.Diagnostic
	Bases *Bases
	// allowedSigners are the keys whose signatures count, or nil.
	allowedSigners []byte
}

// openPlatform reads the platform: its policies, its base commits, and the places of the
// environments' own files.
func (s *State) openPlatform(ctx context.Context) (*Platform, error) {
	repo, err := s.opener.repository(ctx, s.Request.Repository)
	if err != nil {
		return nil, err
	}
	p := &Platform{Repository: repo, Branch: s.Request.Branch, path: path.Clean(s.Request.Path)}
	if p.Branch == "" {
		p.Branch = repo.defaultBranch()
	}
	var ok bool
	if p.Head, ok = repo.Refs[BranchRef(p.Branch)]; !s.Request.Head.IsZero() {
		p.Head = s.Request.Head
	} else if !ok {
		return nil, fmt.Errorf("%s has no branch %s, so there is nothing to promote from; commit to "+
			"it, or name another one with --from", repo.URL, p.Branch)
	}
	if err := repo.Remote.Fetch(ctx, []git.Hash{p.Head}, 0); err != nil {
		return nil, err
	}
	if p.Subject, err = p.subjectOf(s.Request.Subjects); err != nil {
		return nil, err
	}
	if p.allowedSigners, err = p.file(ctx, allowedSignersFile); err != nil {
		return nil, err
	}
	dir, remove, err := p.assemble(ctx, p.Head, nil)
	if err != nil {
		return nil, err
	}
	stages, ds, err := p.Subject.Declarations(ctx, dir)
	if err = errors.Join(err, remove()); err != nil {
		return nil, err
	}
	invalid := slices.ContainsFunc(stages, func(s model.Declaration) bool { return s.Invalid })
	if stages == nil || invalid || diag.Errors(ds) {
		return nil, &PlatformError{What: p.Subject.Form().What, Commit: git.Short(p.Head),
			Diagnostics: ds}
	}
	p.Policies = stages
	if len(stages) == 0 {
		p.Lacks = ds
	}
	if err := p.readSources(ctx); err != nil {
		return nil, err
	}
	p.Bases = basesOf(p.history(p.Head))
	return p, nil
}

// readSources reads the rings of environments whose own files are in another branch.
func (p *Platform) readSources(ctx context.Context) error {
	owns := map[string]source.Own{}
	for i := range p.Policies {
		if p.Policies[i].Promotion.Source == nil {
			continue
		}
		// A failure to read them is an error of reading the environment.
		if own, err := p.own(ctx, &p.Policies[i]); err == nil && !own.Commit.IsZero() {
			owns[p.Policies[i].Name] = own
		}
	}
	if len(owns) == 0 {
		return nil
	}
	dir, remove, err := p.assemble(ctx, p.Head, owns)
	if err != nil {
		return err
	}
	stages, _, err := p.Subject.Declarations(ctx, dir)
	for _, of := range stages {
		if _, elsewhere := owns[of.Name]; elsewhere {
			policy := p.Policy(of.Name)
			policy.Promotion.Rings, policy.NoRings = of.Promotion.Rings, of.NoRings
		}
	}
	return errors.Join(err, remove())
}

// subjectOf returns the first of some subjects that the head is one of.
func (p *Platform) subjectOf(subjects []subject.Subject) (subject.Subject, error) {
	var wanted []string
	for _, s := range subjects {
		form := s.Form()
		is, err := form.Marks(p.Repository.Remote.Objects(), p.Head, p.path)
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
	return nil, fmt.Errorf(
		"%s of %s has at commit %s %s; name another folder with --path, or another branch with --from",
		where, p.Repository.URL, git.Short(p.Head), strings.Join(wanted, " and "))
}

// file returns a file of the platform at the head, or nil.
func (p *Platform) file(ctx context.Context, name string) ([]byte, error) {
	objects := p.Repository.Remote.Objects()
	root, err := objects.CommitTree(p.Head)
	if err != nil {
		return nil, err
	}
	e, found, err := objects.Find(root, path.Join(p.path, name))
	if err != nil || !found || e.Mode != git.FileMode {
		return nil, err
	}
	return objects.Blob(e.ID)
}

// Policy returns the policy of an environment, or nil.
func (p *Platform) Policy(name string) *model.Declaration {
	for i := range p.Policies {
		if p.Policies[i].Name == name {
			return &p.Policies[i]
		}
	}
	return nil
}

// assemble writes the platform of a base commit into a temporary folder.
func (p *Platform) assemble(ctx context.Context, of git.Hash, own map[string]source.Own) (string,
	func() error, error) {
	return source.Assemble(ctx, source.Assembly{
		Repository: p.Repository.Remote.Objects(), Marker: p.Subject.Form().Marker, Base: of,
		Path: p.path, Own: own, Prefetch: p.Repository.Remote.Prefetch,
	})
}

// own returns the place of an environment's own files at the platform's head. The commit
// is the newest that changed them; zero without such files.
func (p *Platform) own(ctx context.Context, policy *model.Declaration) (source.Own, error) {
	if from := policy.Promotion.Source; from != nil {
		head := p.headOf(from.Branch)
		if head.IsZero() {
			return source.Own{}, fmt.Errorf("%s has no branch %s, which environments.%s.source names",
				p.Repository.URL, from.Branch, policy.Name)
		}
		if err := p.Repository.Remote.Fetch(ctx, []git.Hash{head}, 0); err != nil {
			return source.Own{}, err
		}
		commit, err := p.history(head).Newest(from.Path)
		return source.Own{Commit: commit, Path: from.Path}, err
	}
	folder := p.ownPath(policy)
	commit, err := p.history(p.Head).Newest(folder)
	return source.Own{Commit: commit, Path: folder}, err
}

// Committed returns when a commit of the platform was made; the zero Time if it is not here, or
// not a commit.
func (p *Platform) Committed(of tree.Revision) time.Time {
	id := of.Hash()
	if id.IsZero() {
		return time.Time{}
	}
	c, err := p.Repository.Staging.Commit(id)
	if err != nil {
		return time.Time{}
	}
	return c.Committer.When.UTC()
}

// headOf returns the head of a branch, or zero. A clone of one commit, as in CI, knows the other
// branches as branches of origin.
func (p *Platform) headOf(branch string) git.Hash {
	if head := p.Repository.Refs[BranchRef(branch)]; !head.IsZero() {
		return head
	}
	return p.Repository.Refs["refs/remotes/origin/"+branch]
}

// ownPath returns the folder that an environment's own files are in.
func (p *Platform) ownPath(policy *model.Declaration) string {
	if policy.Promotion.Source != nil {
		return policy.Promotion.Source.Path
	}
	return p.history(p.Head).OwnPath(policy.Name)
}

// ownPathIn is ownPath in a commit, which may have the environment by an earlier name.
func (p *Platform) ownPathIn(commit git.Hash, policy *model.Declaration) (string, error) {
	own := p.ownPath(policy)
	if policy.Promotion.Source != nil || len(policy.Formerly) == 0 {
		return own, nil
	}
	objects := p.Repository.Remote.Objects()
	root, err := objects.CommitTree(commit)
	if err != nil {
		return "", err
	}
	for _, name := range append([]string{policy.Name}, policy.Formerly...) {
		folder := p.history(p.Head).OwnPath(name)
		if _, found, err := objects.Find(root, folder); err != nil || found {
			return folder, err
		}
	}
	return own, nil
}

// history returns the platform's branch, at one of its commits.
func (p *Platform) history(head git.Hash) source.History {
	return source.History{Repository: p.Repository.Remote.Objects(), Head: head, Path: p.path}
}

// historyOf returns the head of a branch, whose history it fetches, or
// zero.
func (p *Platform) historyOf(ctx context.Context, branch string) (git.Hash, error) {
	if branch == p.Branch {
		return p.Head, nil
	}
	head := p.headOf(branch)
	if head.IsZero() {
		return head, nil
	}
	return head, p.Repository.Remote.Fetch(ctx, []git.Hash{head}, 0)
}

// OwnCommits returns the commits of an environment's own files after one, up to another, newest
// first; at most a number of them.
func (p *Platform) OwnCommits(policy *model.Declaration, after, to tree.Revision,
	most int) (out []source.Base, err error) {
	if to.Hash().IsZero() {
		return nil, nil
	}
	for c, err := range p.history(to.Hash()).Changes(p.ownPath(policy)) {
		if err != nil || tree.RevisionOf(c.Commit) == after || len(out) == most {
			return out, err
		}
		out = append(out, c)
	}
	return out, nil
}

// Has reports whether a commit is in the history of a branch.
func (p *Platform) Has(ctx context.Context, branch string, commit git.Hash) (bool, error) {
	head, err := p.historyOf(ctx, branch)
	if err != nil || head.IsZero() {
		return false, err
	}
	for at, err := range p.Repository.Remote.Objects().Mainline(head) {
		if err != nil || at.ID == commit {
			return err == nil, err
		}
	}
	_, merged, err := mergedInto(p.Repository.Remote.Objects(), head, commit)
	return merged, err
}

// Resolve returns the base commit of a name. A name is HEAD, which is the branch's head, a
// branch, a tag, or an id or its beginning. With ~N, each of them names the Nth commit before.
func (p *Platform) Resolve(full string) (source.Base, error) {
	name, back, counts := strings.Cut(full, "~")
	n, err := strconv.Atoi(cmp.Or(back, "1"))
	if counts && (err != nil || n < 0) {
		return source.Base{},
			fmt.Errorf("%s is no name of a commit: write ~N for the Nth before it", full)
	}
	if !counts {
		n = 0
	}
	id, found := p.refOrID(name), false
	for at, err := range p.Repository.Remote.Objects().Mainline(p.Head) {
		if err != nil {
			return source.Base{}, err
		}
		if found = found || at.ID == id || len(name) >= 7 &&
			strings.HasPrefix(at.ID.String(), name); !found {
			continue
		}
		if n--; n < 0 {
			if b, err := p.history(at.ID).Base(); err != nil || !b.Commit.IsZero() {
				return b, err
			}
			break
		}
	}
	return source.Base{}, p.notPromotable(full, id)
}

// notPromotable returns the error of a name that is not a commit of the branch's main line; id is
// the commit, if the name is known.
func (p *Platform) notPromotable(name string, id git.Hash) error {
	objects := p.Repository.Remote.Objects()
	if id.IsZero() {
		id, _ = objects.Resolve(name)
	}
	newer, merged := map[git.Hash]bool(nil), false
	if !id.IsZero() {
		newer, merged, _ = mergedInto(objects, p.Head, id)
	}
	if !merged {
		return fmt.Errorf("%s is no commit of branch %s of %s: only what is in its history can be "+
			"promoted", name, p.Branch, p.Repository.URL)
	}
	merge := git.Hash{} // the oldest commit of the main line that has it
	for at, err := range objects.Mainline(p.Head) {
		if err != nil || !newer[at.ID] {
			break
		}
		merge = at.ID
	}
	return fmt.Errorf("%s came to branch %s with merge %s, and only first parents of the branch can "+
		"be promoted: promote %[3]s, which has all that the branch had before it as well; "+
		"to leave out what is not ready, revert that on %[2]s and promote the revert", git.Short(id),
		p.Branch, git.Short(merge))
}

// refOrID returns the commit of a ref or of a full id, or zero.
func (p *Platform) refOrID(name string) git.Hash {
	if name == "HEAD" {
		return p.Head
	}
	for _, ref := range []string{"refs/heads/" + name, "refs/tags/" + name, name} {
		if id, ok := p.Repository.Refs[ref]; ok {
			return id
		}
	}
	if tree.Revision(name).IsCommit() {
		return tree.Revision(name).Hash()
	}
	return git.Hash{}
}

// Assemble writes the platform of some commits into a temporary folder, which remove deletes.
func (p *Platform) Assemble(ctx context.Context, policy *model.Declaration,
	of tree.Source) (dir string, remove func() error, err error) {
	var own map[string]source.Own
	if of.Environment != "" {
		folder, err := p.ownPathIn(of.Environment.Hash(), policy)
		if err != nil {
			return "", nil, err
		}
		own = map[string]source.Own{policy.Name: {Commit: of.Environment.Hash(), Path: folder}}
	}
	return p.assemble(ctx, of.Base.Hash(), own)
}

// members returns the ring of each cluster type by the newest own files of an environment, for a
// base commit with older own files. New labels and rings determine the ring of a cluster type at
// once.
func (p *Platform) members(ctx context.Context, st *Stage, of tree.Source) (map[string]string,
	error) {
	now := tree.Source{Base: of.Base, Environment: tree.RevisionOf(st.Environment.Own.Commit)}
	if now == of || now.Environment == "" {
		return nil, nil
	}
	dir, remove, err := p.Assemble(ctx, st.Policy, now)
	if err != nil {
		return nil, err
	}
	members, err := p.Subject.Members(ctx,
		subject.CompileRequest{Dir: dir, Environment: st.Policy.Name, Rings: st.Policy.Promotion.Rings})
	if members == nil && st.Environment.Record != nil { // errors hide the labels: it stays as it was
		members = map[string]string{}
		for _, e := range st.Environment.Record.ClusterTypes {
			if e.Ring != "" && st.Policy.Promotion.Ring(e.Ring) != nil {
				members[model.TypeOfFolder(e.Name)] = e.Ring
			}
		}
	}
	return members, errors.Join(err, remove())
}

// Compile compiles a stage at some commits. The result reads temporary files, which
// remove deletes. back is subject.CompileRequest's.
func (p *Platform) Compile(ctx context.Context, st *Stage, of tree.Source,
	back bool) (out *subject.Compilation, remove func() error, err error) {
	out, remove, err = p.compile(ctx, st, of, back, st.Policy.Name)
	for _, former := range st.Policy.Formerly { // which older commits have
		if err != nil || !out.Missing {
			break
		}
		if err = remove(); err == nil {
			out, remove, err = p.compile(ctx, st, of, back, former)
		}
	}
	return out, remove, err
}

// compile is Compile with the name that the environment has in the commit.
func (p *Platform) compile(ctx context.Context, st *Stage, of tree.Source, back bool,
	name string) (out *subject.Compilation, remove func() error, err error) {
	policy := *st.Policy
	policy.Name, policy.Formerly = name, append([]string{st.Policy.Name}, st.Policy.Formerly...)
	dir, remove, err := p.Assemble(ctx, &policy, of)
	if err != nil {
		return nil, nil, err
	}
	r := subject.CompileRequest{Dir: dir, Environment: name, Formerly: policy.Formerly, Source: of,
		Previous: st.Environment.Record, Back: back}
	if st.Ring != nil {
		r.Ring, r.Rings = st.Ring.Name, st.Policy.Promotion.Rings
		if r.Members, err = p.members(ctx, st, of); err != nil {
			return nil, nil, errors.Join(err, remove())
		}
	}
	if out, err = p.Subject.Compile(ctx, r); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	if out.Close != nil {
		folder := remove
		remove = func() error { return errors.Join(out.Close(), folder()) }
	}
	return out, remove, nil
}
