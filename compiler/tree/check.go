package tree

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/git"
)

// Check compares all that is in the folder of an environment with what its records list,
// and the records with each other, and takes the word of none for another. It returns
// what is not as it should be, a line each, in an order; none where there is no record.
//
// Files at the root of the folder that say nothing to what reads GitOps trees may be
// there beside. A record that cannot be read is a *RecordError.
func (b *Branch) Check(dir string) ([]string, error) {
	root, _, err := b.environment(dir)
	if err != nil {
		return nil, err
	}
	st, problems, err := b.load(dir)
	if err != nil || st.record == nil || len(problems) > 0 {
		return nil, err
	}
	c := &checker{gitSurvey: newGitSurvey(b.repository.git, root), record: st.record}
	if id := c.record.treeID(); id != c.record.Tree {
		c.problem("the record says that the tree is %s, and what it lists makes %s", c.record.Tree, id)
	}
	for i := range c.record.ClusterTypes {
		if err := c.clusterType(&c.record.ClusterTypes[i]); err != nil {
			return nil, err
		}
	}
	if err := c.others(); err != nil {
		return nil, err
	}
	return c.problems, nil
}

// checker compares one environment.
type checker struct {
	*gitSurvey
	record   *Record
	problems []string
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// clusterType compares the folder of a cluster type, and its record with itself.
func (c *checker) clusterType(e *ClusterTypeEntry) error {
	recorded, err := c.record.read(e.Name)
	if err != nil {
		return err
	}
	want := map[string]Blob{}
	for p, b := range recorded.each {
		want[strings.TrimPrefix(p, e.Name+"/")] = b
	}
	made := TreeID(want)
	if made != e.Tree {
		c.problem("the record says that the folder %s is %s, and the files that it lists make %s", e.Name, e.Tree, made)
	}
	for i := range recorded.Assignments {
		a := &recorded.Assignments[i]
		if id := TreeID(a.Files); id != a.Tree {
			c.problem("the record says that the folder %s/%s is %s, and the files that it lists make %s", e.Name, a.DeploymentTarget, a.Tree, id)
		}
	}
	there, err := c.id(e.Name)
	if err != nil || there == made || there == "" && len(want) == 0 {
		return err
	}
	found, err := c.files(e.Name)
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(want)) {
		switch b, ok := found[p]; {
		case !ok:
			c.problem("%s/%s is gone", e.Name, p)
		case b != want[p]:
			c.problem("%s/%s is not what the record says", e.Name, p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(found)) {
		if _, ok := want[p]; !ok {
			c.problem("%s/%s is none of kalypso's files", e.Name, p)
		}
	}
	return nil
}

// files returns what is in a folder, by path in it. What is no file has no id.
func (c *checker) files(dir string) (map[string]Blob, error) {
	out := map[string]Blob{}
	at, _, err := c.entry(dir)
	if err != nil || at == nil {
		return out, err
	}
	if kindOf(*at) != folder {
		return map[string]Blob{"": {}}, nil
	}
	entries, err := c.read(dir)
	if err != nil {
		return nil, err
	}
	for name, e := range entries {
		switch kindOf(e) {
		case folder:
			below, err := c.files(path.Join(dir, name))
			if err != nil {
				return nil, err
			}
			for p, b := range below {
				out[path.Join(name, p)] = b
			}
		case regular:
			out[name] = Blob{ID(e.ID.String()), e.Mode == git.ExecutableMode}
		default:
			out[name] = Blob{}
		}
	}
	return out, nil
}

// others finds what is in the folder beside cluster types, and in kalypso's own.
func (c *checker) others() error {
	if c.root.IsZero() {
		return nil
	}
	entries, err := c.read(".")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if name != ownFolder && c.record.entry(name) == nil && !isBeside(entries[name]) {
			c.problem("%s is none of kalypso's files", name)
		}
	}
	own, err := c.files(ownFolder)
	if err != nil {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(own)) {
		full := path.Join(ownFolder, p)
		name := strings.TrimSuffix(path.Base(p), path.Ext(p))
		if full == gitignorePath && own[p] == BlobOf(backends.File{Data: []byte(gitignore)}) {
			continue
		}
		if full != recordPath && (c.record.entry(name) == nil || full != ClusterTypeRecordPath(name)) {
			c.problem("%s is none of kalypso's files", full)
		}
	}
	return nil
}

// isBeside says whether something may be at the root of an environment's folder beside
// what kalypso writes: what people and forges read, and nothing that reads GitOps trees.
func isBeside(e git.Entry) bool {
	text := slices.Contains([]string{".md", ".txt", ".adoc", ".rst"}, path.Ext(e.Name))
	return kindOf(e) == regular && text || slices.Contains(beside, e.Name)
}

var beside = []string{
	"README", "LICENSE", "CODEOWNERS", ".gitattributes", ".gitignore", ".editorconfig",
	".github", ".gitlab", ".gitlab-ci.yml", ".gitea", ".forgejo", ".woodpecker.yml", "hydrator.metadata",
}
