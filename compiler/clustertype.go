package compiler

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// allBackends are the backends, by their key in #Reconciler.
var allBackends = all.Backends()

// assemble makes the environment's tree of what was emitted. What failed keeps its
// folder of the record.
func (e *Environment) assemble(ctx context.Context) error {
	k := newKeeper(e)
	if err := k.load(); err != nil {
		return err
	}
	e.settle(k)
	k.explain(e.diagnostics)
	outcomes := make([]clusterType, len(e.spans))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for ct := range e.spans {
		group.Go(func() (err error) {
			if e.builds(e.Model.ClusterTypes[ct].Name) && ctx.Err() == nil {
				outcomes[ct], err = e.clusterType(ct, k)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	t := &tree.Tree{}
	for ct := range outcomes {
		name := e.Model.ClusterTypes[ct].Name
		if !e.builds(name) {
			t.ClusterTypes = append(t.ClusterTypes, tree.ClusterType{Name: name, Outside: true})
			continue
		}
		e.report(outcomes[ct].diagnostics...)
		t.ClusterTypes = append(t.ClusterTypes, outcomes[ct].tree)
		e.Summary.add(outcomes[ct].summary)
	}
	for _, ct := range k.clusterTypes() {
		t.ClusterTypes = append(t.ClusterTypes, ct.tree)
		e.Summary.add(ct.summary)
	}
	slices.SortFunc(t.ClusterTypes, func(a, b tree.ClusterType) int { return strings.Compare(a.Name, b.Name) })
	if e.unknown() {
		e.Summary = Summary{}
		return nil // its gitops is not known: the output stays as it is
	}
	e.Tree = t
	return e.checkChanges(k, outcomes)
}

// clusterType is what became of a cluster type.
type clusterType struct {
	tree        tree.ClusterType
	summary     Summary
	diagnostics []diag.Diagnostic
	kept        string // why the files at its root are not known
	folders     []tree.Folder
}

// clusterType makes the folder of a cluster type. Where nothing failed, only the
// digests of its assignments are looked at.
func (e *Environment) clusterType(n int, k *keeper) (clusterType, error) {
	ct := &e.Model.ClusterTypes[n]
	defer e.assignmentTable(ct.Name).Release()
	out := clusterType{tree: tree.ClusterType{Name: ct.Name}, summary: Summary{ClusterTypes: 1}}
	whole := len(k.keptOf(ct.Name)) == 0 && !e.Model.Incomplete
	for i := e.spans[n].first; i < e.spans[n].next; i++ {
		whole = whole && !e.rows[i].failed
	}
	if whole && e.reconciler(ct) != nil {
		out.summary.Assignments = e.spans[n].next - e.spans[n].first
		if said, ok := e.indexSaid(ct, e.clusterTypeKey(n)); ok && !diag.Errors(said.Diagnostics) {
			digest, err := e.contentDigest(n, said.Tree)
			if err != nil {
				return out, err
			}
			out.tree.Digest, out.diagnostics = digest, said.Diagnostics
			out.tree.Content = func() (*tree.Content, error) {
				defer e.assignmentTable(ct.Name).Release()
				folders, err := e.folders(n, k)
				if err != nil {
					return nil, err
				}
				files, _, _, err := e.index(ct, folders)
				return &tree.Content{Files: files, Folders: folders, Clusters: e.clusterNames(ct.Name), Denied: e.denied(ct.Name)}, err
			}
			return out, nil
		}
	}
	folders, err := e.folders(n, k)
	if err != nil {
		return out, err
	}
	files, kept, ds, err := e.index(ct, folders)
	if err != nil {
		return out, err
	}
	if whole && kept == "" {
		said := indexHead{Tree: treeOf(files), Diagnostics: ds}
		e.rememberIndex(ct, e.clusterTypeKey(n), said)
		if out.tree.Digest, err = e.contentDigest(n, said.Tree); err != nil {
			return out, err
		}
	}
	out.diagnostics, out.kept, out.folders = ds, kept, folders
	out.summary = Summary{ClusterTypes: 1}
	out.summary.count(folders)
	out.summary.Failed = e.lost(n, folders)
	content := &tree.Content{Files: files, Kept: kept, Folders: folders, Clusters: e.clusterNames(ct.Name), Denied: e.denied(ct.Name)}
	out.tree.Content = func() (*tree.Content, error) { return content, nil }
	return out, nil
}

// clusterNames returns the names of the clusters of a type, sorted.
func (e *Environment) clusterNames(clusterType string) []string {
	var names []string
	for _, c := range e.clusters[clusterType] {
		names = append(names, c.Name)
	}
	return names
}

// lost counts the assignments that failed and have nothing to keep.
func (e *Environment) lost(n int, folders []tree.Folder) int {
	there := map[string]bool{}
	for _, f := range folders {
		there[f.Info.DeploymentTarget] = true
	}
	lost := 0
	for i := e.spans[n].first; i < e.spans[n].next; i++ {
		if !there[e.Schedule.Assignments[i].Target.FullName] {
			lost++
		}
	}
	return lost
}

// clusterTypeKey identifies all that the folder of a cluster type is made of.
func (e *Environment) clusterTypeKey(n int) cache.Key {
	ct := &e.Model.ClusterTypes[n]
	h := e.indexKey("cluster type", ct)
	for i := e.spans[n].first; i < e.spans[n].next; i++ {
		h.Key(e.rows[i].key)
	}
	return h.Sum()
}

// indexKey begins the key of something that is made of a cluster type.
func (e *Environment) indexKey(kind string, ct *model.ClusterType) *cache.Hash {
	h := e.key(kind).String(e.Name).String(ct.Name).String(ct.Description).String(ct.Reconciler).Bytes(e.gitOps())
	if r := e.reconciler(ct); r != nil {
		h.String(r.Backend)
	}
	e.hashClusters(h, ct.Name)
	return h.Bytes(e.Plan.Shared[ct.Name].AppendBinary(nil))
}

// folders returns the folders of a cluster type, sorted.
func (e *Environment) folders(n int, k *keeper) ([]tree.Folder, error) {
	ct := &e.Model.ClusterTypes[n]
	var out []tree.Folder
	for i := e.spans[n].first; i < e.spans[n].next; i++ {
		a := &e.Schedule.Assignments[i]
		if e.rows[i].failed {
			if folder, kept := k.assignment(a); kept {
				out = append(out, folder)
			}
			continue
		}
		head, _ := decodeHead(e.rows[i].head)
		if err := head.decode(); err != nil {
			return nil, err
		}
		out = append(out, tree.Folder{
			Info:    e.folder(i, head),
			Files:   head.files,
			Content: func() ([]backends.File, error) { return e.content(i) },
			Values:  e.tuples[e.Plan.TupleOf[i]].head.Digest,

			Selection: e.selection(i),
		})
	}
	there := map[string]bool{}
	for _, f := range out {
		there[f.Info.DeploymentTarget] = true
	}
	out = append(out, k.others(ct.Name, there)...)
	var kept []backends.Folder
	for _, f := range out {
		there[f.Info.DeploymentTarget] = true
		if f.Kept != nil {
			kept = append(kept, f.Info)
		}
	}
	for _, f := range k.needed(ct.Name, kept, there) {
		out = append(out, tree.Folder{Info: f, Kept: &tree.Kept{Reason: "a folder that is kept depends on it"}})
	}
	slices.SortFunc(out, func(a, b tree.Folder) int {
		return strings.Compare(a.Info.DeploymentTarget, b.Info.DeploymentTarget)
	})
	return out, nil
}

// index makes the files at a cluster type's root; kept is the reason why it cannot.
func (e *Environment) index(ct *model.ClusterType, folders []tree.Folder) (files []backends.File, kept string, ds []diag.Diagnostic, err error) {
	r := e.reconciler(ct)
	if _, known := e.Plan.Shared[ct.Name]; r == nil || !known {
		return nil, "the reconciler " + ct.Reconciler + " has errors", nil, nil
	}
	if slices.ContainsFunc(folders, func(f tree.Folder) bool { return f.Info.Backend != r.Backend }) {
		return nil, "folders of another reconciler are kept", nil, nil // settle has reported it
	}
	all := infos(folders)
	text, err := json.Marshal(all)
	if err != nil {
		return nil, "", nil, err
	}
	table, key := e.assignmentTable(ct.Name), e.indexKey("index", ct).Bytes(text).Sum()
	if body, ok := table.Body(key); ok {
		if files, _, err := decodeBody(body); err == nil {
			if head, ok := table.Head(key); ok && json.Unmarshal(head, &ds) == nil {
				return files, "", ds, nil
			}
		}
	}
	files, ds = allBackends[r.Backend].Index(e.backendClusterType(ct), all)
	if !diag.Errors(ds) {
		ds = append(ds, unwritable(allBackends[r.Backend], model.Ref{Collection: "clusterTypes", Name: ct.Name}, files, all)...)
	}
	if diag.Errors(ds) {
		return nil, "errors: " + codes(ds), ds, nil
	}
	head, err := json.Marshal(ds)
	if err != nil {
		return nil, "", nil, err
	}
	table.Put(key, head, encodeBody(files, nil))
	return files, "", ds, nil
}

// indexHead is what every build needs of the files at a cluster type's root.
type indexHead struct {
	Tree        tree.ID           `json:"tree"`
	Diagnostics []diag.Diagnostic `json:"diagnostics,omitempty"` // unresolved
}

// indexSaid returns what the cache knows of a cluster type's index by the key of
// the cluster type.
func (e *Environment) indexSaid(ct *model.ClusterType, of cache.Key) (said indexHead, ok bool) {
	text, ok := e.assignmentTable(ct.Name).Head(e.saidKey(of))
	return said, ok && json.Unmarshal(text, &said) == nil
}

func (e *Environment) rememberIndex(ct *model.ClusterType, of cache.Key, said indexHead) {
	text, err := json.Marshal(said)
	if err == nil {
		e.assignmentTable(ct.Name).Put(e.saidKey(of), text, nil)
	}
}

func (e *Environment) saidKey(of cache.Key) cache.Key { return e.key("index said").Key(of).Sum() }

// treeOf returns the id of a tree of files.
func treeOf(files []backends.File) tree.ID {
	blobs := map[string]tree.Blob{}
	for _, f := range files {
		blobs[f.Path] = tree.BlobOf(f)
	}
	return tree.TreeID(blobs)
}

// contentDigest identifies the folder of a cluster type in which nothing failed,
// and all that its record says of it, whatever they were made of; index is the
// tree of the files at its root.
func (e *Environment) contentDigest(n int, index tree.ID) (model.Digest, error) {
	h := cache.NewHash("cluster type").String(string(index))
	for _, name := range e.clusterNames(e.Model.ClusterTypes[n].Name) {
		h.String(name)
	}
	h.Int(len(e.clusters[e.Model.ClusterTypes[n].Name]))
	for i := e.spans[n].first; i < e.spans[n].next; i++ {
		head, _ := decodeHead(e.rows[i].head)
		if _, err := head.decodeShared(); err != nil {
			return "", err
		}
		f := e.folder(i, head)
		h.Bytes(head.tree[:]).String(string(e.Configuration(i)))
		h.String(f.DeploymentTarget).String(f.Workspace).String(f.Workload).String(f.Namespace).String(f.Version).String(f.Backend)
		h.Int(int(e.rows[i].head[0] & headOrphan)).Int(f.Wave).Bytes(f.Shared).Bytes(head.retention.encode()).Int(len(f.DependsOn))
		for _, target := range f.DependsOn {
			h.String(target)
		}
		hashSelection(h, e.selection(i))
	}
	for _, d := range e.denied(e.Model.ClusterTypes[n].Name) {
		hashStrings(h.String(d.DeploymentTarget), d.Policies)
	}
	return model.Digest(h.Sum().String()), nil
}

func hashSelection(h *cache.Hash, s tree.Selection) {
	for _, names := range [][]string{s.Policies, s.SparedBy, s.Configs, s.ConfigSchemas} {
		hashStrings(h, names)
	}
}

func hashStrings(h *cache.Hash, list []string) {
	h.Int(len(list))
	for _, s := range list {
		h.String(s)
	}
}

func (e *Environment) backendClusterType(ct *model.ClusterType) *backends.ClusterType {
	return &backends.ClusterType{
		Environment: e.Name,
		Name:        ct.Name,
		Description: ct.Description,
		GitOps:      e.Model.GitOps,
		Clusters:    e.clusters[ct.Name],
		Reconciler:  backends.Spec{Ref: reconcilerRef(ct), Value: e.Plan.Shared[ct.Name]},
		Ref:         model.Ref{Collection: "clusterTypes", Name: ct.Name},
	}
}

// reconciler returns the cluster type's reconciler; nil where it is sick.
func (e *Environment) reconciler(ct *model.ClusterType) *model.Reconciler {
	i, found := slices.BinarySearchFunc(e.Model.Reconcilers, ct.Reconciler, func(r model.Reconciler, name string) int {
		return strings.Compare(r.Name, name)
	})
	if !found {
		return nil
	}
	return &e.Model.Reconcilers[i]
}

func reconcilerRef(ct *model.ClusterType) model.Ref {
	return model.Ref{Collection: "reconcilers", Name: ct.Reconciler}
}

func infos(folders []tree.Folder) []backends.Folder {
	out := make([]backends.Folder, len(folders))
	for i, f := range folders {
		out[i] = f.Info
	}
	return out
}

// codes lists the codes of the errors among diagnostics.
func codes(ds []diag.Diagnostic) string {
	var out []string
	for _, d := range ds {
		if d.Severity == diag.Error {
			out = append(out, string(d.Code))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}
