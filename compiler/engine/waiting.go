package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// why says why errors keep the entries of clusters as they are.
type why int

const (
	whichClass      why = iota // it is not known which class they are of
	lacksAssignment            // the next folder lacks what runs on them
	keptWithValues             // the next folder keeps what takes values that they would not have
	keepValues                 // their folder keeps what takes the values that they have
	noEntry                    // the same, of clusters that have no entry yet
)

// wait is for what clusters of a cluster type wait.
type wait struct {
	ct, to string // to is the folder that they are to follow
	why    why
}

// waiting are the clusters that wait, and the deployment targets whose errors these are.
type waiting struct{ clusters, targets map[string]bool }

type waits map[wait]*waiting

func (w waits) add(of wait, cluster string, targets ...string) {
	if w[of] == nil {
		w[of] = &waiting{map[string]bool{}, map[string]bool{}}
	}
	w[of].clusters[cluster] = true
	for _, target := range targets {
		w[of].targets[target] = true
	}
}

// reportWaits warns of clusters whose entries stay as they are because of errors.
func (e *entries) reportWaits() {
	all := slices.SortedFunc(maps.Keys(e.waits), func(a, b wait) int {
		return cmp.Or(cmp.Compare(a.ct, b.ct), cmp.Compare(a.to, b.to), cmp.Compare(a.why, b.why))
	})
	for _, of := range all {
		clusters, targets := slices.Sorted(maps.Keys(e.waits[of].clusters)), slices.Sorted(maps.Keys(e.waits[of].targets))
		n := len(clusters)
		which, goOn := "cluster "+clusters[0], "it goes"
		stay, have, get := "stays with its folder", "keeps its entry, and the values in it,", "gets no entry yet"
		if n > 1 {
			which, goOn = fmt.Sprintf("%d clusters of %s", n, of.ct), "they go"
			stay, have, get = "stay with their folders", "keep their entries, and the values in them,", "get no entries yet"
		}
		what := kubernetes.Few(targets)
		hint := fmt.Sprintf("correct the errors of %s on %s; %s on with the next build", what, of.to, goOn)
		message := ""
		switch of.why {
		case whichClass:
			message = fmt.Sprintf("%s %s: errors hide which class that is", which, stay)
			hint = fmt.Sprintf("correct the errors of configs and config schemas; %s on with the next build", goOn)
		case lacksAssignment:
			message = fmt.Sprintf("%s %s: errors keep %s out of %s, which comes next", which, stay, what, of.to)
		case keptWithValues:
			message = fmt.Sprintf("%s %s: errors keep %s as it was in %s, which comes next, with values "+
				"of single clusters as they were", which, stay, what, of.to)
		case keepValues:
			message = fmt.Sprintf("%s %s as errors keep %s as it was in %s", which, have, what, of.to)
		case noEntry:
			message = fmt.Sprintf("%s %s: errors keep %s as it was in %s, with values of single clusters "+
				"as they were", which, get, what, of.to)
		}
		if n > 1 {
			message += " (" + kubernetes.Few(clusters) + ")"
		}
		ref := model.Ref{Collection: "clusterTypes", Name: of.ct}
		d := diag.New(diag.WaitingClusters, message).At(ref, "").On(ref.String()).Hinting(hint)
		e.reports.add(d)
	}
}

// reportOtherTypes warns of clusters that are to follow folders of another cluster type.
func (e *entries) reportOtherTypes() {
	all := map[[2]string][]string{} // clusters, by the cluster types
	for _, m := range e.moves {
		if from, to := model.TypeOfFolder(m.from.Folder), model.TypeOfFolder(m.to); from != to {
			all[[2]string{from, to}] = append(all[[2]string{from, to}], m.from.Cluster)
		}
	}
	for _, types := range slices.SortedFunc(maps.Keys(all),
		func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		clusters := slices.Sorted(slices.Values(all[types]))
		which, goes := "cluster "+clusters[0], "goes"
		hint := fmt.Sprintf("apply to it what kalypso bootstrap cluster %s/%s prints: its reconciler "+
			"may not read the other folder before", e.in.Name, clusters[0])
		if n := len(clusters); n > 1 {
			which, goes = fmt.Sprintf("%d clusters", n), "go"
			hint = fmt.Sprintf("apply to each of them what kalypso bootstrap cluster prints for it, as "+
				"for %s/%s: its reconciler may not read the other folder before", e.in.Name, clusters[0])
		}
		message := fmt.Sprintf("%s %s from cluster type %s to %s: what ran there is removed, "+
			"and runs anew", which, goes, types[0], types[1])
		if len(clusters) > 1 {
			message += " (" + kubernetes.Few(clusters) + ")"
		}
		ref := model.Ref{Collection: "clusters", Name: clusters[0]}
		e.reports.add(diag.New(diag.OtherClusterType, message).At(ref, "").On(ref.At("clusterType").String()).
			Hinting(hint))
	}
}
