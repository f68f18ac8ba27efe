//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	root "github.com/kalypso-io/kalypso"
)

// fleet is the cost of finding the commits of many environments.
type fleet struct {
	Environments int     `json:"environments"`
	Repositories int     `json:"repositories"` // of GitOps, in addition to the platform's
	Cold         carried `json:"cold"`         // with an empty store
	Warm         carried `json:"warm"`         // with the objects of an earlier run
	LsRemote     carried `json:"lsRemote"`     // git's, of each repository
}

// The environments of a fleet.
const (
	fleetRepositories = 4
	fleetBreadth      = 3  // so many environments come after each
	fleetSide         = 10 // cluster types, and workloads, which are all on each
)

// measureFleet promotes a commit to many environments. Then it gives another commit to the first
// one, without reports, and measures the status. All other environments wait for the first.
func measureFleet(k *kalypso, j job, o options) (out *fleet, err error) {
	out = &fleet{Environments: o.environments, Repositories: min(fleetRepositories, o.environments)}
	s, err := serve(filepath.Join(j.Dir, "server"))
	if err != nil {
		return nil, err
	}
	defer s.close() //nolint:errcheck // nobody asks it any more
	platform, err := s.repository("platform.git")
	if err != nil {
		return nil, err
	}
	repositories := make([]*served, out.Repositories)
	for i := range repositories {
		if repositories[i], err = s.repository(fmt.Sprintf("gitops-%d.git", i)); err != nil {
			return nil, err
		}
	}
	environments := make([]declared, o.environments)
	for i := range environments {
		environments[i] = declared{name: fmt.Sprintf("e%02d", i), repository: repositories[i%len(repositories)].url}
		if i > 0 {
			environments[i].after = environments[(i-1)/fleetBreadth].name
		}
	}
	if err := writeFleet(j.platform(), environments, fleetSide); err != nil {
		return nil, err
	}
	cache := filepath.Join(j.Dir, "cache")
	promote := func(message string, args ...string) error {
		if err := writeEnvironments(j.platform(), environments...); err != nil {
			return err
		}
		if err := commitAll(j.platform(), message, platform.url); err != nil {
			return err
		}
		printed, err := output(k.command(cache,
			append([]string{"promote", "--repo", platform.url, "--pending-ok"}, args...)...))
		if err != nil {
			return fmt.Errorf("%w\n%s", err, printed)
		}
		return nil
	}
	if err := promote("The platform", "--all"); err != nil {
		return nil, err
	}
	environments[0].reported = true
	if err := promote("Reports are wanted", "--env", environments[0].name); err != nil {
		return nil, err
	}
	return out, out.ask(k, s, j, o, cache, append(repositories, platform))
}

// writeFleet writes a platform with all workloads on all cluster types of each
// environment, and so many of both.
func writeFleet(dir string, environments []declared, side int) error {
	files := map[string]string{}
	files["cue.mod/module.cue"] = fmt.Sprintf("module: \"fleet.example/platform@v0\"\nlanguage: "+
		"version: \"v0.17.0\"\ndeps: %q: v: %q\n", root.ModulePath, root.ModuleVersion)
	files["platform.cue"] = fleetText
	var workloads, clusterTypes strings.Builder
	for i := range side {
		fmt.Fprintf(&workloads, "workloads: \"w%d\": {workspace: \"team\", labels: type: \"application\"}\n", i)
		fmt.Fprintf(&clusterTypes, "clusterTypes: \"c%d\": {reconciler: \"flux\", labels: region: \"r%d\"}\n", i, i)
		for _, e := range environments {
			fmt.Fprintf(&workloads, "workloads: \"w%d\": deploymentTargets: %q: {environment: %q, "+
				"manifests: helm: {repo: \"https://charts.example.com\", chart: \"w%d\", version: "+
				"\"1.0.%d\"}}\n", i, e.name, e.name, i, i)
		}
	}
	files["workloads.cue"] = "package platform\n\n" + workloads.String()
	for _, e := range environments {
		files["environments/"+e.name+"/own.cue"] = "package platform\n\n" + clusterTypes.String() +
			"schedulingPolicies: all: {deploymentTargets: {}, clusterTypes: {}}\n"
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

const fleetText = `package platform

import "kalypso.io/schema"

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
workloads:          schema.#Workloads
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
reconcilers:        schema.#Reconcilers
namespaceServices:  schema.#NamespaceServices

reconcilers: flux: flux: {interval: "5m", secretRef: "gitops", credentials: {"git.example.com": secretRef: "gitops", "charts.example.com": secretRef: "charts", "registry.example.com": secretRef: "registry"}}
namespaceServices: default: {}
configs: everywhere: {match: {}, values: LOG_LEVEL: "info"}
`

// ask measures the questions.
func (f *fleet) ask(k *kalypso, s *server, j job, o options, cache string, all []*served) (err error) {
	platform := all[len(all)-1]
	status := func() (carried, error) {
		return s.carry(k.command(cache, "promote", "status", "--repo", platform.url, "-o", "json"))
	}
	f.Cold, err = bestCarried(o.runs, func() (carried, error) {
		if err := os.RemoveAll(fetched(cache)); err != nil {
			return carried{}, err
		}
		return status()
	})
	if err != nil {
		return err
	}
	if f.Warm, err = bestCarried(o.runs, status); err != nil {
		return err
	}
	f.LsRemote, err = bestCarried(o.runs, func() (sum carried, err error) {
		for _, r := range all {
			c, err := s.carry(git(j.Dir, "ls-remote", "-q", r.url))
			if err != nil {
				return sum, err
			}
			sum.add(c)
		}
		return sum, nil
	})
	if err != nil {
		return err
	}
	return removeFrom(j.Dir, j.Dir)
}
