package engine

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// assembly makes the folders of cluster types from emissions. A failed assignment keeps its
// recorded folder.
type assembly struct {
	in          *Inputs
	scope       *scope
	assignments *assignments
	keeper      *keeper
}

// clusterTypes returns the results for the cluster types of the model, made concurrently. The
// results are empty for cluster types outside this build.
func (y *assembly) clusterTypes(ctx context.Context) ([]clusterType, error) {
	out := make([]clusterType, len(y.in.spans))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for n := range y.in.spans {
		group.Go(func() (err error) {
			if y.scope.builds(y.in.Model.ClusterTypes[n].Name) && ctx.Err() == nil {
				out[n], err = y.clusterType(n)
			}
			return err
		})
	}
	err := group.Wait()
	_ = y.assignments.cachedTypes().Flush() // as in putAway
	return out, err
}

// treeOf makes a tree of three parts: the cluster types of the model, the cluster types that have
// left the model but stay, and the entries of clusters.
func treeOf(types []clusterType, k *keeper, e *entries, out *reports) (*tree.Tree, Counts) {
	t, counts := &tree.Tree{ClusterTypes: e.trees()}, Counts{}
	for n := range types {
		if name := k.in.Model.ClusterTypes[n].Name; !k.scope.builds(name) {
			t.ClusterTypes = append(t.ClusterTypes, tree.ClusterType{Name: name, Outside: true})
			continue
		}
		out.add(types[n].diagnostics...)
		t.ClusterTypes = append(t.ClusterTypes, types[n].tree)
		counts.add(types[n].counts)
	}
	for _, ct := range k.clusterTypes() {
		t.ClusterTypes = append(t.ClusterTypes, ct.tree)
		counts.add(ct.counts)
	}
	slices.SortFunc(t.ClusterTypes,
		func(a, b tree.ClusterType) int { return strings.Compare(a.Name, b.Name) })
	return t, counts
}

// clusterType is the result of a cluster type.
type clusterType struct {
	tree        tree.ClusterType
	counts      Counts
	diagnostics []diag.Diagnostic
	kept        string // why the files at its root are not known; "" if they are
	folders     []tree.Folder
}

// clusterType makes the folder of a cluster type. If nothing failed, it only uses the digests of
// the assignments.
func (y *assembly) clusterType(n int) (clusterType, error) {
	ct := &y.in.Model.ClusterTypes[n]
	if y.assignments.types[n].same {
		return y.asRecorded(n), nil
	}
	defer y.assignments.putAway(n)
	out := clusterType{tree: tree.ClusterType{Name: ct.Name}, counts: Counts{ClusterTypes: 1}}
	whole := len(y.keeper.keptOf(ct.Name)) == 0 && !y.in.Model.Incomplete &&
		!y.assignments.failedIn(y.in.spans[n]) && y.scope.lostClusters[ct.Name] == nil
	var key cache.Key
	if whole && y.in.reconciler(ct) != nil {
		out.counts.Assignments = y.in.spans[n].next - y.in.spans[n].first
		key = y.key(n)
		if known, ok := y.rememberedIndex(ct, key); ok {
			digest, err := y.contentDigest(n, known.Files, nil)
			if err != nil {
				return out, err
			}
			out.tree.Digest, out.diagnostics = digest, known.Diagnostics
			y.assignments.cacheType(n, digest, known.Diagnostics)
			out.tree.Content = func(context.Context) (*tree.Content, error) {
				folders, err := y.folders(n)
				return y.content(n, known.Files, "", folders), err
			}
			return out, nil
		}
	}
	folders, err := y.folders(n)
	if err != nil {
		return out, err
	}
	index, kept, err := y.index(n, folders)
	if err != nil {
		return out, err
	}
	if whole && kept == "" {
		y.rememberIndex(ct, key, index)
		if out.tree.Digest, err = y.contentDigest(n, index.Files, folders); err != nil {
			return out, err
		}
		y.assignments.cacheType(n, out.tree.Digest, index.Diagnostics)
	}
	out.diagnostics, out.kept, out.folders = index.Diagnostics, kept, folders
	out.counts = Counts{ClusterTypes: 1}
	out.counts.count(folders)
	if y.assignments.failedIn(y.in.spans[n]) {
		out.counts.Failed = y.lost(n, folders)
	}
	content := y.content(n, index.Files, kept, folders)
	out.tree.Content = func(context.Context) (*tree.Content, error) { return content, nil }
	return out, nil
}

// asRecorded returns a cluster type that equals the recorded one. It makes the content only if
// the folder turns out to be different.
func (y *assembly) asRecorded(n int) clusterType {
	ct, known := &y.in.Model.ClusterTypes[n], &y.assignments.types[n]
	out := clusterType{tree: tree.ClusterType{Name: ct.Name, Digest: known.Digest},
		diagnostics: known.Diagnostics}
	out.counts = Counts{ClusterTypes: 1, Assignments: y.in.spans[n].next - y.in.spans[n].first}
	out.tree.Content = func(ctx context.Context) (*tree.Content, error) {
		if err := y.assignments.complete(ctx, y.scope, n); err != nil {
			return nil, err
		}
		folders, err := y.folders(n)
		if err != nil {
			return nil, err
		}
		index, kept, err := y.index(n, folders)
		return y.content(n, index.Files, kept, folders), err
	}
	return out
}

// content returns the content of a cluster type's folder.
func (y *assembly) content(n int, files []tree.File, kept string,
	folders []tree.Folder) *tree.Content {
	name := y.in.Model.ClusterTypes[n].Name
	return &tree.Content{
		Files: files, Kept: kept, Folders: folders, Clusters: y.scope.recordedClusters(name),
		Facts: y.scope.facts(&y.in.Model.ClusterTypes[n]), Denied: y.keeper.retained.deniedOf(name),
		Make: func(ctx context.Context, wanted []int) ([][]backends.File, error) {
			var numbers []int
			for _, f := range wanted {
				if f == tree.Root {
					continue
				}
				i, assigned := y.in.Schedule.Index(name, folders[f].Info.DeploymentTarget)
				if !assigned {
					return nil,
						fmt.Errorf("folder %s/%s is kept, and has no content", name, folders[f].Info.DeploymentTarget)
				}
				numbers = append(numbers, i)
			}
			made, err := y.assignments.contents(ctx, numbers)
			if i := slices.Index(wanted, tree.Root); i >= 0 && err == nil {
				made = slices.Insert(made, i, y.root(n, folders))
			}
			return made, err
		},
	}
}

// lost counts the failed assignments that have no previous folder to keep.
func (y *assembly) lost(n int, folders []tree.Folder) int {
	there := map[string]bool{}
	for _, f := range folders {
		there[f.Info.DeploymentTarget] = true
	}
	lost := 0
	for i := y.in.spans[n].first; i < y.in.spans[n].next; i++ {
		if !there[y.in.Schedule.Assignments[i].Target.FullName] {
			lost++
		}
	}
	return lost
}

// key identifies all inputs of a cluster type's folder by the keys of its emissions.
func (y *assembly) key(n int) cache.Key {
	ct := &y.in.Model.ClusterTypes[n]
	h := y.in.indexKey("cluster type", ct)
	for i := y.in.spans[n].first; i < y.in.spans[n].next; i++ {
		h.Key(y.assignments.rows[i].key)
	}
	return h.Sum()
}

// folders returns the folders of a cluster type, sorted by deployment target.
func (y *assembly) folders(n int) ([]tree.Folder, error) {
	ct, count := &y.in.Model.ClusterTypes[n], y.in.spans[n].next-y.in.spans[n].first
	out := make([]tree.Folder, 0, count)
	for i := y.in.spans[n].first; i < y.in.spans[n].next; i++ {
		a := &y.in.Schedule.Assignments[i]
		if y.assignments.rows[i].failed {
			if folder, kept := y.keeper.assignment(a); kept {
				out = append(out, folder)
			}
			continue
		}
		summary, _ := decodeSummary(y.assignments.rows[i].summary)
		if err := summary.decode(); err != nil {
			return nil, err
		}
		out = append(out, tree.Folder{
			Info:      y.assignments.folder(i, summary),
			Files:     summary.files,
			Tree:      tree.ID(hex.EncodeToString(summary.tree[:])),
			Values:    y.assignments.tuples.summary(i).digest,
			Selection: y.in.selection(i),
		})
	}
	if len(y.keeper.keptOf(ct.Name)) > 0 || y.assignments.failedIn(y.in.spans[n]) {
		out = append(out, y.kept(ct.Name, out)...)
	}
	slices.SortFunc(out, func(a, b tree.Folder) int {
		return strings.Compare(a.Info.DeploymentTarget, b.Info.DeploymentTarget)
	})
	return out, nil
}

// kept returns the folders of a cluster type that stay in addition to its assignments' folders.
func (y *assembly) kept(clusterType string, folders []tree.Folder) []tree.Folder {
	there := make(map[string]bool, len(folders))
	for _, f := range folders {
		there[f.Info.DeploymentTarget] = true
	}
	out := y.keeper.others(clusterType, there)
	var kept []backends.Folder
	for _, f := range slices.Concat(folders, out) {
		there[f.Info.DeploymentTarget] = true
		if f.Kept != nil {
			kept = append(kept, f.Info)
		}
	}
	for _, f := range y.keeper.needed(clusterType, kept, there) {
		out = append(out, tree.Folder{Info: f, Kept: &tree.Retention{Reason: neededByFolders.kept("")}})
	}
	return out
}

// indexSummary describes the files at a cluster type's root, without errors.
type indexSummary struct {
	Files       []tree.File       `json:"files"`
	Diagnostics []diag.Diagnostic `json:"diagnostics,omitempty"` // unresolved
}

// index determines the files at the root of a cluster type with folders. If it cannot, kept is
// the reason.
func (y *assembly) index(n int, folders []tree.Folder) (index indexSummary, kept string,
	err error) {
	ct := &y.in.Model.ClusterTypes[n]
	r := y.in.reconciler(ct)
	if !y.in.Reconciled(ct) {
		return index, failedReconciler.kept(ct.Reconciler), nil
	}
	if y.scope.holdsLost(ct.Name) {
		return index, hiddenClusters.kept(""), nil
	}
	if slices.ContainsFunc(folders, func(f tree.Folder) bool { return f.Info.Backend != r.Backend }) {
		return index, foreignFolders.kept(""), nil // settle has reported it
	}
	h := y.in.indexKey("index", ct)
	for i := range folders {
		hashFolder(h, &folders[i].Info)
	}
	key := h.Sum()
	if known, ok := y.rememberedIndex(ct, key); ok {
		return known, "", nil
	}
	all := infos(folders)
	files, ds := y.in.backend(ct).Index(y.in.delivered(ct), all)
	ds = y.in.strict(ds)
	if !diag.Errors(ds) {
		ds = append(ds, unwritable(y.in.backend(ct), ct.Ref(), files, all)...)
	}
	index.Diagnostics = ds
	if diag.Errors(ds) {
		return index, failedIndex.kept(codes(ds)), nil
	}
	index.Files = tree.FilesOf(files)
	y.rememberIndex(ct, key, index)
	y.assignments.roots[n] = y.assignments.spill.add([][]backends.File{files})[0]
	return index, "", nil
}

// root returns the files at the root of a cluster type with folders.
func (y *assembly) root(n int, folders []tree.Folder) []backends.File {
	if files := y.assignments.spill.read(y.assignments.roots[n : n+1])[0]; files != nil {
		return files
	}
	ct := &y.in.Model.ClusterTypes[n]
	files, _ := y.in.backend(ct).Index(y.in.delivered(ct), infos(folders))
	return files
}

// rememberedIndex returns the cached index for a key. The key covers all inputs of a cluster
// type, or only the input of its backend.
func (y *assembly) rememberedIndex(ct *model.ClusterType, key cache.Key) (known indexSummary,
	ok bool) {
	text, ok := y.assignments.table(ct.Name).Get(key)
	return known, ok && json.Unmarshal(text, &known) == nil
}

func (y *assembly) rememberIndex(ct *model.ClusterType, key cache.Key, index indexSummary) {
	text, err := json.Marshal(index)
	if err == nil {
		y.assignments.table(ct.Name).Put(key, text)
	}
}

// contentDigest identifies the folder and the record of a cluster type without failures. It
// depends on their content only, not on the inputs. index are the files at the root, and folders
// are the folders of the assignments, or nil.
func (y *assembly) contentDigest(n int, index []tree.File, folders []tree.Folder) (model.Digest,
	error) {
	ct := &y.in.Model.ClusterTypes[n]
	r := &tree.ClusterTypeRecord{Clusters: y.in.clusterNames(ct.Name), Facts: y.scope.facts(ct)}
	r.Denied = y.keeper.retained.deniedOf(ct.Name)
	return digestOf(tree.OfFiles(index), r, func(h *cache.Hash) error {
		for i := y.in.spans[n].first; i < y.in.spans[n].next; i++ {
			summary, _ := decodeSummary(y.assignments.rows[i].summary)
			shared, retained, _, err := summary.parts()
			if err != nil {
				return err
			}
			a := tree.AssignmentRecord{Folder: y.assignments.folder(i, summary),
				Values: y.assignments.tuples.summary(i).digest}
			if folders == nil {
				a.Selection = y.in.selection(i)
			} else {
				a.Selection = folders[i-y.in.spans[n].first].Selection
			}
			hashRecorded(h, &a, summary.tree[:], shared, retained)
		}
		return nil
	})
}

// digestOf identifies the folder and the record of a cluster type. files is the id of the files
// at its root, and assignments adds the record's assignments. The output contains the digest: if
// its form changes, the next build writes all records again.
func digestOf(files tree.ID, r *tree.ClusterTypeRecord,
	assignments func(*cache.Hash) error) (model.Digest, error) {
	h := cache.NewHash("cluster type").String(string(files))
	for _, name := range r.Clusters {
		h.String(name)
	}
	h.Int(len(r.Clusters))
	if r.Facts == nil && len(r.Clusters) > 0 {
		h.Int(-1) // facts are not recorded for clusters with entries
	}
	for _, f := range r.Facts {
		text, err := f.Encode()
		if err != nil {
			return "", err
		}
		h.Bytes(text)
	}
	if err := assignments(h); err != nil {
		return "", err
	}
	for _, d := range r.Denied {
		hashStrings(h.String(d.DeploymentTarget), d.Policies)
	}
	return model.Digest(h.Sum().String()), nil
}

// hashRecorded adds the record of an assignment to the digest of its cluster type. id is the id
// of its folder. shared and retained are encoded as in its summary.
func hashRecorded(h *cache.Hash, a *tree.AssignmentRecord, id, shared, retained []byte) {
	orphan := 0
	if a.Orphan {
		orphan = summaryOrphan
	}
	h.Bytes(id).String(string(a.Values))
	h.String(a.DeploymentTarget).String(a.Workspace).String(a.Workload).String(a.Namespace).
		String(a.Version).String(string(a.VersionFrom)).String(a.Backend)
	h.Int(orphan).Int(a.Wave).Bytes(shared).Bytes(retained)
	for _, names := range [][]string{a.DependsOn, a.Policies, a.SparedBy, a.Configs, a.ConfigSchemas} {
		hashStrings(h, names)
	}
}

// hashFolder adds all fields of a folder that a backend's Index reads.
func hashFolder(h *cache.Hash, f *backends.Folder) {
	h.String(f.DeploymentTarget).String(f.Workspace).String(f.Workload).String(f.Namespace).
		String(f.Version).String(string(f.VersionFrom)).String(f.Backend)
	h.String(strconv.FormatBool(f.Orphan)).Int(f.Wave).Bytes(f.Shared)
	hashStrings(h, f.DependsOn)
	hashStrings(h, f.Retained)
}

// clusterTypes returns the cluster types that have left the platform but stay whole. It also
// returns the cluster types of other shards, marked as outside.
func (k *keeper) clusterTypes() []clusterType {
	if k.scope.record == nil {
		return nil
	}
	known := map[string]bool{}
	for _, ct := range k.in.Model.ClusterTypes {
		known[ct.Name] = true
	}
	var out []clusterType
	for _, ct := range k.scope.record.ClusterTypes {
		switch {
		case known[ct.Name] || tree.IsShard(ct.Name):
		case !k.scope.builds(ct.Name):
			out = append(out, clusterType{tree: tree.ClusterType{Name: ct.Name, Outside: true}})
		case k.keepReason(ct.Name) != "":
			content := &tree.Content{Kept: k.keepReason(ct.Name), Folders: k.others(ct.Name, nil),
				Denied: k.retained.deniedOf(ct.Name)}
			if was := k.records[ct.Name]; was != nil {
				content.Facts = was.Facts
				if !k.pulledByEntries(ct.Name) {
					content.Clusters = slices.DeleteFunc(slices.Clone(was.Clusters),
						func(name string) bool { return k.scope.record.FolderOf(name) != "" })
				}
			}
			kept := clusterType{
				tree: tree.ClusterType{Name: ct.Name,
					Content: func(context.Context) (*tree.Content, error) { return content, nil }},
				counts: Counts{ClusterTypes: 1},
			}
			kept.counts.count(content.Folders)
			out = append(out, kept)
		}
	}
	return out
}
