//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	root "github.com/kalypso-io/kalypso"
)

// inventory is the cost of compiling a platform whose clusters are rows of a file.
type inventory struct {
	Rows int       `json:"rows"`
	Kind valueKind `json:"kind"`
	// Read is the cost of reading, checking and classifying all rows if the classes are already
	// compiled. It prints no cluster. The other costs are for a git commit; zero if they were not
	// measured.
	Read cost `json:"read"`
	Cold cost `json:"cold"`
	Row  cost `json:"row"` // with the labels of one row changed
	// Diffs are the costs of describing the effect of changed labels on the clusters, which move
	// between classes. The old side is a folder, or a commit that was built before.
	Diffs []*moves `json:"diffs,omitempty"`
}

// moves is a change that moves clusters between classes, and the cost of diff for it.
type moves struct {
	Clusters int  `json:"clusters"` // number of moved clusters
	Record   cost `json:"record"`   // since the output that was built before it
	Cache    cost `json:"cache"`    // since the commit before it, with a warm cache
}

// cost returns the larger costs of both old sides.
func (m *moves) cost() cost {
	return cost{CPU: max(m.Record.CPU, m.Cache.CPU), Memory: max(m.Record.Memory, m.Cache.Memory)}
}

// valueKind is the kind of clusters' own values.
type valueKind string

const (
	noValues       valueKind = "in classes alone"
	ownValues      valueKind = "with values of their own"
	composedValues valueKind = "with values composed for each"
)

// The labels that divide the clusters of a platform into 200 classes, of one cluster type.
const (
	inventoryRegions   = 20
	inventoryWaves     = 10
	inventoryWorkloads = 10
)

// maxBuilt is the largest number of rows that are built. More rows are only read.
const maxBuilt = 100_000

// measureInventories measures platforms of so many rows, and with values ten times fewer.
func measureInventories(k *kalypso, o options, work string) (out []*inventory, err error) {
	small := max(o.rows/10, 1)
	for _, i := range []*inventory{{Rows: small, Kind: noValues}, {Rows: small, Kind: ownValues},
		{Rows: small, Kind: composedValues}, {Rows: o.rows, Kind: noValues}} {
		dir := filepath.Join(work, fmt.Sprintf("inventory-%d", len(out)))
		if err := i.measure(k, job{Seed: o.seed, Dir: dir}, o.runs); err != nil {
			return nil, fmt.Errorf("%d rows: %w", i.Rows, err)
		}
		if err := removeFrom(dir, dir); err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return out, nil
}

func (i *inventory) measure(k *kalypso, j job, runs int) (err error) {
	if err := i.write(j.platform(), 0, 0); err != nil {
		return err
	}
	read := func() *exec.Cmd {
		return k.command(filepath.Join(j.Dir, "cache-read"), "-C", j.platform(), "get", "cluster-types", "-o", "json")
	}
	if _, err := output(read()); err != nil {
		return err
	}
	if i.Read, err = best(runs, func() (*exec.Cmd, error) { return read(), nil }); err != nil || i.Rows > maxBuilt {
		return err
	}
	bare, cache := filepath.Join(j.Dir, "bare.git"), filepath.Join(j.Dir, "cache")
	if _, err := output(git(j.Dir, "init", "-q", "--bare", bare)); err != nil {
		return err
	}
	build := func() *exec.Cmd {
		return k.command(cache, "-C", j.platform(), "build", "-o", "json", "--git", bare, "--branch", branch)
	}
	if i.Cold, _, err = costOf(build()); err != nil {
		return err
	}
	changed := 0
	if i.Row, err = best(runs, func() (*exec.Cmd, error) {
		changed++
		return build(), i.write(j.platform(), 1, changed)
	}); err != nil {
		return err
	}
	if i.Kind == composedValues { // it takes CUE as long as the cold build did
		return nil
	}
	return i.measureDiffs(k, j, runs)
}

// measureDiffs measures changes that move few clusters to other classes, and most of them. It
// fails if the report does not have the clusters that moved.
func (i *inventory) measureDiffs(k *kalypso, j job, runs int) error {
	out, cache := filepath.Join(j.Dir, "out"), filepath.Join(j.Dir, "cache")
	if err := i.write(j.platform(), 0, 0); err != nil {
		return err
	}
	for _, cmd := range []*exec.Cmd{
		git(j.platform(), "init", "-q"), git(j.platform(), "add", "."), git(j.platform(), "commit", "-q", "-m", "Platform"),
		k.command(cache, "-C", j.platform(), "build", "--to", out),
	} {
		if _, err := output(cmd); err != nil {
			return err
		}
	}
	for _, clusters := range []int{max(i.Rows/100, 1), max(i.Rows*9/10, 1)} {
		if err := i.write(j.platform(), clusters, 1); err != nil {
			return err
		}
		m := &moves{Clusters: clusters}
		for _, of := range []struct {
			to   *cost
			side string
		}{{&m.Record, out}, {&m.Cache, "HEAD"}} {
			diff := func() *exec.Cmd { return k.command(cache, "-C", j.platform(), "diff", of.side, "-o", "json") }
			printed, err := output(diff())
			if err != nil {
				return err
			}
			var report struct{ Clusters struct{ Concerned int } }
			if err := json.Unmarshal(printed, &report); err != nil {
				return err
			}
			if report.Clusters.Concerned != clusters {
				return fmt.Errorf("diff %s reports a change on %d clusters, but %d move",
					filepath.Base(of.side), report.Clusters.Concerned, clusters)
			}
			if *of.to, err = best(runs, func() (*exec.Cmd, error) { return diff(), nil }); err != nil {
				return err
			}
		}
		i.Diffs = append(i.Diffs, m)
	}
	return nil
}

// write writes the platform. The first rows get the region that is so many after their own.
func (i *inventory) write(dir string, rows, further int) error {
	text := inventoryText
	switch i.Kind {
	case ownValues:
		text += "inventories: stores: columns: values: {STORE: \"name\", TILLS: {column: \"tills\", type: \"int\"}}\n"
	case composedValues:
		text += "configs: store: {match: {}, #assignment: schema.#Assignment, values: HOST: " +
			"\"\\(#assignment.cluster.name).\\(#assignment.cluster.labels.region).example.com\"}\n"
	}
	for w := range inventoryWorkloads {
		text += fmt.Sprintf("workloads: \"w%d\": {workspace: \"team\", deploymentTargets: live: "+
			"{environment: \"prod\", manifests: git: {repo: \"https://git.example.com/w%d\", tag: \"1.0\"}}}\n", w, w)
	}
	files := map[string]string{
		"cue.mod/module.cue": fmt.Sprintf("module: \"inventory.example/platform@v0\"\nlanguage: "+
			"version: \"v0.17.0\"\ndeps: %q: v: %q\n", root.ModulePath, root.ModuleVersion),
		"platform.cue":              text,
		"environments/prod/own.cue": "package platform\n",
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, "stores.csv"))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, "name,labels.region,labels.wave,tills")
	for n := range i.Rows {
		region := n % inventoryRegions
		if n < rows {
			region = (region + further) % inventoryRegions
		}
		fmt.Fprintf(w, "store-%07d,r%d,w%d,%d\n", n, region, n/inventoryRegions%inventoryWaves, 1+n%9)
	}
	return errors.Join(w.Flush(), f.Close())
}

var inventoryText = fmt.Sprintf(`package platform

import (
	"list"

	"kalypso.io/schema"
)

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
inventories:        schema.#Inventories
workloads:          schema.#Workloads
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
reconcilers:        schema.#Reconcilers

environments: prod: gitops: {repo: "https://git.example.com/gitops", branch: "deploy", path: "prod"}
reconcilers: flux: flux: {}
clusterTypes: store: {reconciler: "flux", entries: "cluster"}
inventories: stores: {file: "stores.csv", clusterType: "store", labels: {region: =~"^r[0-9]+$", wave: =~"^w[0-9]+$"}}
schedulingPolicies: all: {deploymentTargets: {}, clusterTypes: {}}
configs: {
	for n in list.Range(0, %d, 1) {"region-\(n)": {match: {}, clusters: labels: region: "r\(n)", values: REGION: "r\(n)"}}
	for n in list.Range(0, %d, 1) {"wave-\(n)": {match: {}, clusters: labels: wave: "w\(n)", values: WAVE: n}}
}
`, inventoryRegions, inventoryWaves)

func printInventories(out io.Writer, all []*inventory) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(out, "\nClusters of inventories, of one cluster type with %d workloads, in %d "+
		"classes\n\n", inventoryWorkloads, inventoryRegions*inventoryWaves)
	row := func(cells ...any) { fmt.Fprintf(out, "%-40s"+strings.Repeat(" %22s", len(cells)-1)+"\n", cells...) }
	cell := func(c cost) string {
		if c.CPU == 0 {
			return "-"
		}
		return seconds(c.CPU) + " " + mebibytes(c.Memory)
	}
	row("clusters", "read, cpu and peak", "cold, git commit", "one row changed")
	for _, i := range all {
		row(thousands(i.Rows)+" "+string(i.Kind), cell(i.Read), cell(i.Cold), cell(i.Row))
	}
	fmt.Fprintln(out)
	row("diff where clusters change class", "of them", "since an output", "since HEAD")
	for _, i := range all {
		for _, m := range i.Diffs {
			row(thousands(i.Rows)+" "+string(i.Kind), thousands(m.Clusters), cell(m.Record), cell(m.Cache))
		}
	}
}
