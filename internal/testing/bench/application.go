//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// applications is the cost of projecting an application with one target, beside helm template on
// the same chart, which helm create writes.
type applications struct {
	Cold cost `json:"cold"` // the chart is not in the cache
	Idle cost `json:"idle"` // nothing changed
	Helm cost `json:"helm"`
}

// applicationRuns is the number of runs. The best counts. Each takes a tenth of a second.
const applicationRuns = 10

func measureApplication(k *kalypso, work string) (out *applications, err error) {
	dir := filepath.Join(work, "application")
	values := filepath.Join(dir, "environments", "dev", "default", "values.yaml")
	helm := filepath.Join(work, "helm")
	if _, err := output(exec.Command("go", "build", "-o", helm, "helm.sh/helm/v3/cmd/helm")); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(values), 0o755); err != nil {
		return nil, err
	}
	chart := filepath.Join(dir, "shop")
	if _, err := output(exec.Command(helm, "create", chart)); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "kalypso.yaml"), []byte("name: shop\nkubernetesVersion: "+
		"\"1.34.2\"\nmanifests: {helm: {path: shop}}\n"), 0o644); err != nil {
		return nil, err
	}
	replicas := 0
	change := func() error { // to values that no run has rendered
		replicas++
		return os.WriteFile(values, fmt.Appendf(nil, "replicaCount: %d\n", replicas), 0o644)
	}
	project := k.command(filepath.Join(work, "application-cache"), "-C", dir, "project",
		"--to", filepath.Join(work, "application-out"))
	again := func(first func() error, cmd *exec.Cmd) func() (*exec.Cmd, error) {
		return func() (*exec.Cmd, error) {
			c := exec.Command(cmd.Path, cmd.Args[1:]...)
			c.Env = cmd.Env
			return c, first()
		}
	}
	same := func() error { return nil }
	out = &applications{}
	if out.Cold, err = best(applicationRuns, again(change, project)); err == nil {
		out.Idle, err = best(applicationRuns, again(same, project))
	}
	if err == nil {
		out.Helm, err = best(applicationRuns, again(same, exec.Command(helm, "template", "shop", chart,
			"--values", values, "--kube-version", "1.34.2", "--include-crds")))
	}
	return out, err
}

// ofHelm is a cost of an application with one target, as a multiple of helm template.
func ofHelm(of func(*applications) cost) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) {
		if r.Application == nil {
			return 0, false
		}
		return of(r.Application).CPU / r.Application.Helm.CPU, true
	}
}
