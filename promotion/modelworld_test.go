package promotion

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/subject"
)

// modelPolicy is the content of the file policy.json of a model's platform. It is everything that
// the platform's Subject reads of policies.
type modelPolicy struct {
	Environments []modelEnvironment // sorted by name
}

type modelEnvironment struct {
	Name     string
	Formerly []string      `json:",omitempty"` // newest first
	After    []string      `json:",omitempty"`
	Any      bool          `json:",omitempty"`
	Advance  model.Advance `json:",omitempty"`
	Every    time.Duration `json:",omitempty"`
	modelGates
	Rings  []modelRing `json:",omitempty"`
	Manual bool        // people merge the change requests
	Types  int         // how many cluster types each ring has
}

type modelRing struct {
	Name  string
	After []string `json:",omitempty"`
	modelGates
}

type modelGates struct {
	Rollout *model.RolloutGate `json:",omitempty"`
	Soak    *model.SoakGate    `json:",omitempty"`
	Budget  *int               `json:",omitempty"`
}

func (g *modelGates) gates() model.Gates {
	out := model.Gates{Rollout: g.Rollout, Soak: g.Soak}
	if g.Budget != nil {
		out.Budget = &model.BudgetGate{Assignments: g.Budget}
	}
	return out
}

// stages returns the policy in the form for the engine.
func (p *modelPolicy) stages(repository string) []model.Declaration {
	var out []model.Declaration
	for i := range p.Environments {
		e := &p.Environments[i]
		s := model.Declaration{
			Name: e.Name, Formerly: e.Formerly, After: e.After,
			GitOps: &model.GitOps{Repo: repository, Branch: e.branch(), Path: "."},
			Promotion: model.Promotion{
				After: e.After, Any: e.Any, Advance: e.Advance, Every: e.Every, Gates: e.gates(), Skippable: []string{"soak", "after", "budget"}, AutoMerge: !e.Manual,
			},
		}
		for j := range e.Rings {
			r := &e.Rings[j]
			s.Promotion.Rings = append(s.Promotion.Rings, model.Ring{Name: r.Name, After: r.After, Gates: r.gates()})
		}
		out = append(out, s)
	}
	return out
}

// modelTargets are the deployment targets that each cluster type has.
var modelTargets = []string{"t1", "t2"}

// branch returns the branch with the tree: the environment's first name.
func (e *modelEnvironment) branch() string {
	if len(e.Formerly) > 0 {
		return e.Formerly[len(e.Formerly)-1]
	}
	return e.Name
}

// assignments returns the ids of the assignments of a ring; "" for an environment
// without rings.
func (e *modelEnvironment) assignments(ring string) []string {
	var out []string
	for _, name := range e.clusterTypes(ring) {
		for _, target := range modelTargets {
			out = append(out, e.Name+"/"+name+"/"+target)
		}
	}
	return out
}

func (e *modelEnvironment) clusterTypes(ring string) []string {
	if ring == "" {
		ring = "all"
	}
	var out []string
	for i := range e.Types {
		out = append(out, fmt.Sprintf("%s-%d", ring, i))
	}
	return out
}

// modelSubject compiles a platform whose tree is a function of two files: base.txt, and own.txt
// of the environment. Target t2 only has the first word of the base.
type modelSubject struct{ repository string }

func (modelSubject) Form() subject.Form { return subject.Form{Marker: source.PlatformMarker} }

func (m modelSubject) Declarations(_ context.Context, dir string) ([]model.Declaration, []diag.Diagnostic, error) {
	p, err := readModelPolicy(dir)
	if err != nil {
		return nil, nil, err
	}
	return p.stages(m.repository), nil, nil
}

func (modelSubject) Members(context.Context, subject.CompileRequest) (map[string]string, error) {
	return map[string]string{}, nil
}

func readModelPolicy(dir string) (*modelPolicy, error) {
	data, err := os.ReadFile(filepath.Join(dir, "policy.json"))
	if err != nil {
		return nil, err
	}
	p := &modelPolicy{}
	return p, json.Unmarshal(data, p)
}

// brokenBase is in a base.txt that does not compile.
const brokenBase = "broken"

func (m modelSubject) Compile(_ context.Context, r subject.CompileRequest) (*subject.Compilation, error) {
	p, err := readModelPolicy(r.Dir)
	if err != nil {
		return nil, err
	}
	base, err := os.ReadFile(filepath.Join(r.Dir, "base.txt"))
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile(filepath.Join(r.Dir, "environments", r.Environment, "own.txt"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	i := slices.IndexFunc(p.Environments, func(e modelEnvironment) bool { return e.Name == r.Environment })
	if i < 0 {
		return &subject.Compilation{Missing: true, Errors: 1}, nil
	}
	out := &subject.Compilation{Options: tree.Options{
		Platform: "example.com/platform@v0", Environment: r.Environment, Formerly: r.Formerly, Source: r.Source,
		Compiler: tree.Compiler{Version: "v0", CUE: "v0", Schema: "v0"},
	}}
	if strings.Contains(string(base), brokenBase) {
		out.Errors = 1
		return out, nil
	}
	e := &p.Environments[i]
	rings := []string{""}
	if len(e.Rings) > 0 {
		rings = nil
		for _, ring := range e.Rings {
			rings = append(rings, ring.Name)
		}
	}
	out.Tree = &tree.Tree{}
	for _, ring := range rings {
		for _, name := range e.clusterTypes(ring) {
			out.Tree.ClusterTypes = append(out.Tree.ClusterTypes, modelType(name, string(base), string(own), r.Ring != "" && ring != r.Ring))
		}
	}
	slices.SortFunc(out.Tree.ClusterTypes, func(a, b tree.ClusterType) int { return strings.Compare(a.Name, b.Name) })
	out.Options.Ring = r.Ring
	return out, nil
}

func modelType(name, base, own string, outside bool) tree.ClusterType {
	root := []backends.File{{Path: "README.md", Data: []byte(name + "\n")}}
	content := tree.ContentOf(root)
	var made [][]backends.File
	for _, target := range modelTargets {
		text := modelContent(target, base, own)
		file := backends.File{Path: "deploy.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + target + "\ndata:\n  text: " + text + "\n")}
		content.Folders = append(content.Folders, tree.Folder{
			Info:   backends.Folder{DeploymentTarget: target, Workload: "w", Workspace: "w", Namespace: "n", Backend: "ansible"},
			Files:  []tree.File{tree.FileOf(file)},
			Values: model.DigestBytes([]byte(text)),
		})
		made = append(made, []backends.File{file})
	}
	content.Make = func(_ context.Context, folders []int) (out [][]backends.File, _ error) {
		for _, i := range folders {
			if i == tree.Root {
				out = append(out, root)
			} else {
				out = append(out, made[i])
			}
		}
		return out, nil
	}
	return tree.ClusterType{Name: name, Outside: outside, Digest: model.DigestBytes([]byte(name + base + own)), Content: func(context.Context) (*tree.Content, error) { return content, nil }}
}

func modelContent(target, base, own string) string {
	if target == "t2" {
		base, _, _ = strings.Cut(base, " ")
	}
	return base + "/" + own
}

func (modelSubject) Satisfies(context.Context, model.Expr, json.RawMessage) ([]string, error) {
	return nil, nil
}

// modelClusters are the clusters: the last report of each assignment, with the commit of the
// GitOps branch that it is about.
type modelClusters struct {
	mu      sync.Mutex
	reports map[string]modelReport // by assignment
}

type modelReport struct {
	of    string
	state rollout.State
	at    time.Time
}

func (c *modelClusters) Name() string { return "the model's clusters" }

func (c *modelClusters) Reports(_ context.Context, w *rollout.DesiredState) ([]rollout.Report, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []rollout.Report
	for _, a := range w.Assignments {
		r, there := c.reports[a.ID]
		if !there {
			continue
		}
		if !slices.ContainsFunc(w.Commits, func(id git.Hash) bool { return id.String() == r.of }) {
			r.state = rollout.Progressing
		}
		out = append(out, rollout.Report{Assignment: a.ID, State: r.state, By: "a cluster", At: r.at, Since: r.at})
	}
	return out, nil
}
