package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// entries are the entries of the clusters whose cluster types have entries: each determines what
// its cluster pulls. As with cluster types, the name of a folder of entries determines its shard.
// So each folder belongs to one build, whichever folders its entries name.
type entries struct {
	in       *Inputs
	scope    *scope
	retained *retainedOutput
	reports  *reports
	types    map[string]*model.ClusterType // of the model, by folder
	// makers make the files of the entries that name a folder, by folder. Folders whose clusters
	// cannot have entries are absent.
	makers map[string]func(*model.Cluster) []backends.File
	keys   map[string]cache.Key // results of folderKey
	last   sync.Map             // entryFiles by folder
	// shards are the folders of entries as they will be, by name.
	shards map[string]*shard
	// followed are the folders that kept entries name.
	followed map[string]bool
	left     []string // clusters that should have no entries any more, and whose entries stay
	moves    []move
	fresh    []move // entries that the record does not list
	waits    map[wait]*waitSets
	// needed are the deployment targets of recorded folders that stay because clusters there do
	// not move, by folder.
	needed map[string]map[string]bool
}

// move is a cluster's change from a recorded entry to one that names another folder. For a fresh
// entry, from has only the cluster.
type move struct {
	shard *shard
	from  tree.EntryRecord
	to    string
}

// wait is why clusters of a cluster type wait, and the folder that they wait for.
type wait struct {
	clusterType, folder string
	reason              reason
}

// waitSets are the waiting clusters, and the deployment targets with the errors that cause the
// wait.
type waitSets struct{ clusters, targets map[string]bool }

// wait notes that a cluster waits because of errors of the targets.
func (e *entries) wait(of wait, cluster string, targets ...string) {
	if e.waits[of] == nil {
		e.waits[of] = &waitSets{map[string]bool{}, map[string]bool{}}
	}
	e.waits[of].clusters[cluster] = true
	for _, target := range targets {
		e.waits[of].targets[target] = true
	}
}

// shard is a folder of entries.
type shard struct {
	entries  []tree.Entry     // sorted by cluster
	clusters []*model.Cluster // parallel to entries; nil for kept entries
	digest   model.Digest     // of entries without kept ones; "" until it is known
	keeps    bool             // whether it has kept entries or lacks fresh ones
	made     sync.Once        // makes the files of the entries
	recorded []tree.EntryRecord
}

// planEntries decides which folder each cluster follows. A cluster with a recorded entry keeps it:
//   - if errors hide the class of the cluster,
//   - if the selectors of its class no longer select anything, or
//   - if the cluster is no longer listed.
//
// Only an explicit removal by name stops the deployments of a cluster.
func planEntries(s *scope, r *retainedOutput, out *reports) (*entries, error) {
	e := &entries{in: s.in, scope: s, retained: r, reports: out,
		types:  map[string]*model.ClusterType{},
		makers: map[string]func(*model.Cluster) []backends.File{}, keys: map[string]cache.Key{},
		shards: map[string]*shard{}, followed: map[string]bool{}, needed: map[string]map[string]bool{},
		waits: map[wait]*waitSets{}}
	for n := range s.in.Model.ClusterTypes {
		ct := &s.in.Model.ClusterTypes[n]
		e.types[ct.Name] = ct
	}
	refused := map[string]bool{}
	for n := range s.in.Model.ClusterTypes {
		if ct := &s.in.Model.ClusterTypes[n]; ct.Entries == model.ClusterEntries && s.in.Reconciled(ct) &&
			e.refuse(ct, refused[ct.TypeName()]) {
			refused[ct.TypeName()] = true
			s.in.hold(n)
		}
	}
	for i := range s.in.Model.Clusters {
		c := &s.in.Model.Clusters[i]
		if name := tree.ShardName(c.Name); e.makers[c.Folder] != nil && s.in.request.Shard.Has(name) &&
			s.inRing(c.Folder) {
			sh := e.shard(name)
			sh.entries, sh.clusters = append(sh.entries, tree.Entry{Cluster: c.Name, Folder: c.Folder}),
				append(sh.clusters, c)
		}
	}
	if s.record != nil {
		for name, sh := range e.shards {
			if !slices.ContainsFunc(s.record.ClusterTypes,
				func(entry tree.ClusterTypeEntry) bool { return entry.Name == name }) {
				e.addFresh(sh, nil)
			}
		}
		for _, entry := range s.record.ClusterTypes {
			if !tree.IsShard(entry.Name) || !s.in.request.Shard.Has(entry.Name) || entry.Digest != "" &&
				e.shards[entry.Name] != nil && entry.Digest == e.digest(e.shards[entry.Name]) {
				continue
			}
			recorded, err := s.record.ClusterType(entry.Name)
			if err != nil {
				return nil, err
			}
			e.keep(entry.Name, recorded.Entries)
		}
	}
	e.reportLeft()
	return e, nil
}

func (e *entries) shard(name string) *shard {
	if e.shards[name] == nil {
		e.shards[name] = &shard{}
	}
	return e.shards[name]
}

// refuse reports whether the clusters of a cluster type cannot have entries. It reports the
// reasons, unless reported says that they are reported already.
func (e *entries) refuse(ct *model.ClusterType, reported bool) bool {
	var ds []diag.Diagnostic
	if same := e.types[backends.EntriesDir]; same != nil {
		ds = append(ds, diag.New(diag.NoEntries,
			fmt.Sprintf("cluster type %s has the name of the folder that entries of clusters are in",
				backends.EntriesDir)).
			At(same.Ref(), "").At(ct.Ref().At("entries"),
			"").On(same.Ref().String()).Hinting("give it another name"))
	}
	maker, problems := e.in.backend(ct).Entries(e.in.delivered(ct))
	if ds = append(ds, problems...); !reported {
		e.reports.add(ds...)
	}
	if diag.Errors(ds) {
		return true
	}
	e.makers[ct.Name] = maker
	return false
}

// keep keeps the entries of the record in a shard that must stay.
func (e *entries) keep(name string, recorded []tree.EntryRecord) {
	sh := e.shard(name)
	sh.recorded = recorded
	e.addFresh(sh, recorded)
	for _, r := range recorded {
		n, listed := sh.find(r.Cluster)
		if listed {
			switch {
			case sh.entries[n].Folder == r.Folder:
			case e.classUnknown() || e.retained.folders[r.Folder] != nil:
				if e.retained.folders[r.Folder] == nil { // that is reported
					e.wait(wait{clusterType: sh.clusters[n].ClusterType, reason: hiddenClass}, r.Cluster)
				}
				e.stay(sh, n, r)
			default:
				e.moves = append(e.moves, move{sh, r, sh.entries[n].Folder})
			}
			continue
		}
		switch {
		case e.hides(r):
		case slices.Contains(e.in.Model.RemovedClusters, r.Cluster):
			continue
		default:
			e.left = append(e.left, r.Cluster)
		}
		sh.entries, sh.clusters = slices.Insert(sh.entries, n, tree.Entry{}),
			slices.Insert(sh.clusters, n, nil)
		e.stay(sh, n, r)
	}
}

// addFresh notes the entries of a shard that are not recorded.
func (e *entries) addFresh(sh *shard, recorded []tree.EntryRecord) {
	for _, entry := range sh.entries {
		if _, is := slices.BinarySearchFunc(recorded, entry.Cluster,
			func(r tree.EntryRecord,
				cluster string) int {
				return strings.Compare(r.Cluster, cluster)
			}); !is {
			e.fresh = append(e.fresh, move{sh, tree.EntryRecord{Cluster: entry.Cluster}, entry.Folder})
		}
	}
}

// stay keeps an entry of a shard, given by its number, as the record has it.
func (e *entries) stay(sh *shard, n int, r tree.EntryRecord) {
	sh.entries[n], sh.clusters[n] = tree.Entry{Cluster: r.Cluster, Folder: r.Folder, Kept: true}, nil
	sh.keeps, e.followed[r.Folder] = true, true
}

// find returns the position of a cluster's entry, or the position to insert it at.
func (sh *shard) find(cluster string) (int, bool) {
	return slices.BinarySearchFunc(sh.entries, cluster,
		func(e tree.Entry, cluster string) int { return strings.Compare(e.Cluster, cluster) })
}

// drop removes the entry of a cluster.
func (sh *shard) drop(cluster string) {
	if n, found := sh.find(cluster); found {
		sh.entries, sh.clusters = slices.Delete(sh.entries, n, n+1), slices.Delete(sh.clusters, n, n+1)
		sh.keeps = true
	}
}

// hides reports whether the absence of a recorded entry may only be due to errors, or to the part
// of the environment that this build is about.
func (e *entries) hides(r tree.EntryRecord) bool {
	if e.in.Model.Incomplete || e.in.Model.ClustersIncomplete ||
		e.in.Model.Invalid[model.Ref{Collection: clusters, Name: r.Cluster}] {
		return true
	}
	c := e.in.Model.Cluster(r.Cluster)
	if c == nil {
		return !e.scope.inRing(r.Folder)
	}
	ct := e.types[c.Folder]
	return ct.Entries == model.ClusterEntries &&
		(e.makers[ct.Name] == nil || !e.scope.inRing(ct.Name) || !e.scope.inRing(r.Folder))
}

// classUnknown reports whether errors may hide the classes of clusters.
func (e *entries) classUnknown() bool {
	return e.in.Model.Incomplete ||
		slices.ContainsFunc(e.in.Model.Configs,
			func(c model.Config) bool { return c.Invalid && c.Clusters == nil }) ||
		slices.ContainsFunc(e.in.Model.ConfigSchemas,
			func(s model.ConfigSchema) bool { return s.Invalid && s.Clusters == nil })
}

// reportLeft warns of entries that stay although the platform does not have their clusters any
// more, or although their cluster types have no entries.
func (e *entries) reportLeft() {
	slices.Sort(e.left)
	by := map[reason][]string{}
	for _, name := range e.left {
		why := typeWithoutEntries
		if e.in.Model.Cluster(name) == nil {
			why = notListed
		}
		by[why] = append(by[why], name)
	}
	ref := model.Ref{Collection: "environments", Name: e.in.Name}
	for _, why := range slices.Sorted(maps.Keys(by)) {
		e.reports.add(why.diagnostic(subject{environment: e.in.Name, clusters: by[why]}).
			At(ref, "").On(ref.At("removals.clusters").String()))
	}
}

// digest identifies the entries if the build makes all of them. The record keeps it.
func (e *entries) digest(sh *shard) model.Digest {
	if sh.digest != "" {
		return sh.digest
	}
	h := cache.NewHash("entries").String(e.in.Name)
	for i, c := range sh.clusters {
		h.String(sh.entries[i].Cluster).Key(e.folderKey(sh.entries[i].Folder)).String(string(c.Digest))
	}
	sh.digest = model.Digest(h.Sum().String())
	return sh.digest
}

// folderKey identifies the input of the entries that name a folder, except for their clusters. It
// hashes the entry of an example, which covers the environment, the reconciler and this version
// of kalypso. Making every entry in each build would take too long.
func (e *entries) folderKey(folder string) cache.Key {
	key, known := e.keys[folder]
	if !known {
		values := model.StructOf(model.Field{Name: "value", Value: model.StringOf("value")})
		example := &model.Cluster{Name: "example", Address: "example", Description: "example",
			Values: &values}
		example.Labels = map[string]string{"label": "label"}
		key = cache.NewHash("entry").String(folder).Bytes(model.Encode(e.makers[folder](example))).Sum()
		e.keys[folder] = key
	}
	return key
}

// trees returns the folders of entries, in no particular order. It includes the folders of other
// shards, marked as outside.
func (e *entries) trees() []tree.ClusterType {
	var out []tree.ClusterType
	if e.scope.record != nil {
		for _, entry := range e.scope.record.ClusterTypes {
			if tree.IsShard(entry.Name) && !e.in.request.Shard.Has(entry.Name) {
				out = append(out, tree.ClusterType{Name: entry.Name, Outside: true})
			}
		}
	}
	for name, sh := range e.shards {
		if len(sh.entries) == 0 {
			continue
		}
		ct := tree.ClusterType{Name: name}
		if !sh.keeps {
			ct.Digest = e.digest(sh)
		}
		ct.Content = func(context.Context) (*tree.Content, error) {
			sh.made.Do(func() { e.make(sh) })
			return &tree.Content{Entries: sh.entries,
				Make: func(_ context.Context, folders []int) ([][]backends.File, error) {
					made := make([][]backends.File, len(folders))
					for i, n := range folders {
						if n == tree.Root {
							made[i] = e.files(sh)
						} else {
							made[i] = e.makers[sh.entries[n].Folder](sh.clusters[n])
						}
					}
					return made, nil
				}}, nil
		}
		out = append(out, ct)
	}
	return out
}

// entryFiles are the last result of a maker for a folder. Often all clusters have the same
// result.
type entryFiles struct {
	made  *backends.File // the first one
	files *tree.EntryFiles
}

// make sets the files of the entries of a shard that are not kept.
func (e *entries) make(sh *shard) {
	for i := range sh.entries {
		entry := &sh.entries[i]
		if entry.Kept {
			continue
		}
		made := e.makers[entry.Folder](sh.clusters[i])
		last, _ := e.last.Load(entry.Folder)
		is, _ := last.(entryFiles)
		if is.made != &made[0] {
			is = entryFiles{&made[0], tree.EntryOf(made)}
			e.last.Store(entry.Folder, is)
		}
		entry.Files = is.files
	}
}

// files returns the files of the entries that are not kept, sorted by path.
func (e *entries) files(sh *shard) []backends.File {
	var out []backends.File
	for i, entry := range sh.entries {
		if entry.Kept {
			continue
		}
		for _, f := range e.makers[entry.Folder](sh.clusters[i]) {
			f.Path = entry.Cluster + "/" + f.Path
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b backends.File) int { return strings.Compare(a.Path, b.Path) })
	return out
}
