package generate

import (
	"fmt"
	"math/rand/v2"
)

var (
	continents = []string{"us-east", "us-west", "us-central", "eu-north", "eu-west", "eu-south", "asia-east", "asia-south",
		"asia-north", "sa-east", "sa-west", "af-south", "af-north", "me-central", "me-south", "oc-east"}
	classes      = []string{"store", "plant", "depot", "office", "regional"}
	sizes        = []string{"small", "medium", "large"}
	tiers        = []string{"frontend", "backend", "data"}
	purposes     = []string{"functional", "performance", "canary", "stable", "shadow", "preview", "nightly", "soak"}
	applications = []string{"orders", "billing", "catalog", "checkout", "payments", "inventory",
		"shipping", "pricing", "search",
		"identity", "loyalty", "returns", "telemetry", "scanner", "labels", "vision", "routing", "planning"}
)

// labels are the labels of one side of an assignment, and its name under its
// implied key.
type labels map[string]string

// clusterType is a generated cluster type.
type clusterType struct {
	name   string
	labels labels // region, class, size, and restricted if it is restricted
}

// regions returns the number of regions of the cluster types. It is so small that some cluster
// types have the same region and class.
func regions(s Size) int { return min(max(s.ClusterTypes/5, 4), 24, s.ClusterTypes) }

func regionName(i int) string {
	return fmt.Sprintf("%s-%d", continents[i%len(continents)], i/len(continents)+1)
}

// newClusterTypes makes cluster types, equally many in each region, of two
// classes per region.
func newClusterTypes(draw *rand.Rand, s Size) []clusterType {
	n := regions(s)
	out := make([]clusterType, s.ClusterTypes)
	for i := range out {
		region, class := i%n, classes[(i%n+i/n%2)%len(classes)]
		out[i] = clusterType{
			name: fmt.Sprintf("%s-%s-%03d", class, regionName(region), i/n),
			labels: labels{
				"region": regionName(region),
				"class":  class,
				"size":   sizes[draw.IntN(len(sizes))],
			},
		}
		if i/n%7 == 3 {
			out[i].labels["restricted"] = "true"
		}
		out[i].labels["clusterType"] = out[i].name
	}
	return out
}

func clusterTypeEntries(draw *rand.Rand, all []clusterType) []entry {
	var out []entry
	for _, c := range all {
		e := entry{name: c.name}
		e.line("labels", without(c.labels, "clusterType"))
		reconciler, format := "flux", "configmap"
		if draw.IntN(10) < 3 {
			reconciler = "argocd"
		}
		if draw.IntN(10) < 2 {
			format = "yaml"
		}
		e.line("reconciler", reconciler)
		e.line("configFormat", format)
		if c.labels["restricted"] != "" {
			e.line("namespaceService", "guarded")
		}
		out = append(out, e)
	}
	return out
}

// target is a generated deployment target.
type target struct {
	workload, name string
	workspace      string
	labels         labels // product, tier, purpose, criticality
}

// products returns the number of products. Each has a policy of its own, which selects its
// assignments. The other policies select some of them again.
func products(s Size) int { return min(max(3, s.Policies*2/3), s.Workloads) }

// newTargets makes targets, by workload. Workloads belong to products, equally
// many to each.
func newTargets(draw *rand.Rand, s Size) []target {
	n := products(s)
	var out []target
	for w := range s.Workloads {
		workload := fmt.Sprintf("%s-%03d", applications[w%len(applications)], w)
		product := w % n
		tier := tiers[draw.IntN(len(tiers))]
		for t := range s.TargetsPerWorkload {
			name := purposes[t%len(purposes)]
			if round := t / len(purposes); round > 0 {
				name = fmt.Sprintf("%s-%d", name, round)
			}
			out = append(out, target{
				workload:  workload,
				name:      name,
				workspace: fmt.Sprintf("team-%02d", product%20),
				labels: labels{
					"product":          fmt.Sprintf("product-%03d", product),
					"tier":             tier,
					"purpose":          purposes[t%len(purposes)],
					"criticality":      []string{"high", "normal", "low"}[t%3],
					"deploymentTarget": workload + "-" + name,
				},
			})
		}
	}
	return out
}

// workloadEntries writes the workloads of the targets. Every third has a
// contract on keys, which every assignment has.
func workloadEntries(draw *rand.Rand, targets []target, keys []defaultKey) []entry {
	var out []entry
	for i, t := range targets {
		if i == 0 || targets[i-1].workload != t.workload {
			e := entry{name: t.workload}
			e.line("workspace", t.workspace)
			e.line("labels", map[string]string{"type": "application", "product": t.labels["product"], "tier": t.labels["tier"]})
			if len(out)%3 == 0 {
				e.line("requires", contract(draw, keys))
			}
			out = append(out, e)
		}
		e := &out[len(out)-1]
		path := fmt.Sprintf("deploymentTargets: %q", t.name)
		e.line(path, map[string]any{
			"environment": "dev",
			"labels":      map[string]string{"purpose": t.labels["purpose"], "criticality": t.labels["criticality"]},
			"manifests":   manifests(draw, t),
		})
		if draw.IntN(10) == 0 {
			e.line(path+": requires", expr(`{REGION: string, CLASS: string, RETRY_BUDGET: *3 | int}`))
		}
	}
	return out
}

func manifests(draw *rand.Rand, t target) map[string]any {
	version := fmt.Sprintf("%d.%d.%d", 1+draw.IntN(4), draw.IntN(20), draw.IntN(10))
	switch draw.IntN(10) {
	case 0, 1:
		return map[string]any{"oci": map[string]any{"url": "oci://registry.example.com/manifests/" +
			t.workload, "tag": version}}
	case 2, 3:
		return map[string]any{"helm": map[string]any{
			"repo": "https://charts.example.com", "chart": t.workload, "version": version, "platformValues": "platform",
			"values": map[string]any{"replicaCount": 1 + draw.IntN(3), "image": map[string]any{"tag": version}},
		}}
	}
	return map[string]any{"git": map[string]any{
		"repo": "https://git.example.com/apps/" + t.workload, "branch": "dev", "path": "./" + t.name,
	}}
}

// without is a copy of the labels without a key.
func without(l labels, key string) labels {
	out := labels{}
	for k, v := range l {
		if k != key {
			out[k] = v
		}
	}
	return out
}
