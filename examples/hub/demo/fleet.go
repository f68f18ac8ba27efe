package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/observe"
)

// fleet are the simulated clusters.
type fleet struct {
	hub      *api.Client
	gitops   string // the repository
	clusters []*cluster
	running  sync.WaitGroup

	mu   sync.Mutex
	last error // why the last report was not taken
}

// cluster is a simulated cluster with Flux, on a site that has a row in the inventory.
type cluster struct {
	environment, name, kind, printer string
	news                             chan *release
}

// release is the content of a commit of a GitOps branch for the clusters of each type.
type release struct {
	commit  string
	objects map[string][]kustomization
}

// kustomization is a Kustomization that applies the folder of an assignment.
type kustomization struct {
	Metadata struct {
		Name        string            `yaml:"name"`
		Annotations map[string]string `yaml:"annotations"`
	} `yaml:"metadata"`
	Spec struct {
		Path string `yaml:"path"`
	} `yaml:"spec"`
	release string // of the workload: the tag of its artifact
}

// newFleet returns a cluster for each row of the platform's inventories.
func newFleet(hub *api.Client, platform, gitops string) (*fleet, error) {
	f := &fleet{hub: hub, gitops: gitops}
	for _, environment := range []string{"dev", "prod"} {
		file, err := os.Open(filepath.Join(platform, "environments", environment, "sites.csv"))
		if err != nil {
			return nil, err
		}
		rows, err := csv.NewReader(file).ReadAll()
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		for _, row := range rows[1:] {
			f.clusters = append(f.clusters, &cluster{environment: environment, name: row[0], kind: row[2],
				printer: row[3], news: make(chan *release, 1)})
		}
	}
	return f, nil
}

// start runs all clusters until the context ends; wait waits for that.
func (f *fleet) start(ctx context.Context) {
	for _, c := range f.clusters {
		f.running.Go(func() { f.run(ctx, c) })
	}
}

func (f *fleet) wait() { f.running.Wait() }

func (f *fleet) problem() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

const (
	applying = 2 * time.Second // the maximum time until a pulled commit is applied
	every    = time.Minute     // between two reports of a cluster, even without changes
)

// run is the life of a cluster: it pulls a commit, applies it after a while, and reports its state,
// as kalypso observe does.
func (f *fleet) run(ctx context.Context, c *cluster) {
	sender := observe.NewSender(f.hub)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var has *release
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case has = <-c.news:
			select {
			case <-ctx.Done():
				return
			case <-time.After(rand.N(applying)):
			}
		}
		if has == nil || len(has.objects[c.kind]) == 0 {
			continue // the environment has no commit for it yet
		}
		sent, err := sender.Send(ctx, []api.Report{c.report(has)})
		if err := errors.Join(err, sent.Err()); err != nil && ctx.Err() == nil {
			f.mu.Lock()
			f.last = err
			f.mu.Unlock()
		}
	}
}

// The release that does not start on sites with printers of this type.
const (
	brokenRelease = "2.0.0"
	oldPrinter    = "rp80"
)

// report returns the report of the cluster, as kalypso observe writes it.
func (c *cluster) report(has *release) api.Report {
	r := api.Report{Cluster: c.name, By: "kalypso observe", At: time.Now(), Snapshot: true}
	for _, k := range has.objects[c.kind] {
		item := api.Item{
			Assignment: k.Metadata.Annotations["kalypso.io/assignment"], Object: k.Metadata.Name,
			Commit: has.commit, Path: strings.TrimPrefix(k.Spec.Path, "./"), State: "ok",
		}
		if _, target, _ := strings.Cut(item.Path, "/"); strings.HasPrefix(target, "checkout-") &&
			k.release == brokenRelease && c.printer == oldPrinter {
			item.State = "failed"
			item.Message = fmt.Sprintf("Kustomization flux-system/%s HealthCheckFailed: Deployment "+
				"%s/checkout: printer %s is not supported", target,
				strings.TrimSuffix(k.Metadata.Name, "-assignment"), c.printer)
		}
		r.Items = append(r.Items, item)
	}
	r.Digest = observe.DigestOf(r.Items)
	return r
}

// pull sends the release of their environment's branch to all clusters, at commits by
// environment.
func (f *fleet) pull(ctx context.Context, commits map[string]string) error {
	for environment, commit := range commits {
		has, err := f.read(ctx, commit)
		if err != nil {
			return err
		}
		for _, c := range f.clusters {
			if c.environment == environment {
				select {
				case <-c.news: // it was not read yet, and is old
				default:
				}
				c.news <- has
			}
		}
	}
	return nil
}

// heads returns the newest commit of each environment's branch.
func (f *fleet) heads(ctx context.Context) (map[string]string, error) {
	out, err := f.git(ctx, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)",
		"refs/heads/dev", "refs/heads/prod")
	heads := map[string]string{}
	for line := range strings.Lines(out) {
		name, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
		heads[name] = commit
	}
	return heads, err
}

// read reads the content of a commit: the Kustomizations of each cluster type, and the artifacts in
// their folders.
func (f *fleet) read(ctx context.Context, commit string) (*release, error) {
	out := &release{commit: commit, objects: map[string][]kustomization{}}
	folders, err := f.git(ctx, "ls-tree", "-d", "--name-only", commit)
	if err != nil {
		return nil, err
	}
	for kind := range strings.FieldsSeq(folders) {
		if strings.HasPrefix(kind, ".") {
			continue // the record
		}
		objects, err := documents[kustomization](f.git(ctx, "show", commit+":"+kind+"/assignments.yaml"))
		if err != nil {
			return nil, err
		}
		for _, k := range objects {
			sources, err := documents[struct {
				Spec struct {
					Ref struct {
						Tag string `yaml:"tag"`
					} `yaml:"ref"`
				} `yaml:"spec"`
			}](f.git(ctx, "show", commit+":"+strings.TrimPrefix(k.Spec.Path, "./")+"/reconciler.yaml"))
			if err != nil {
				return nil, err
			}
			k.release = sources[0].Spec.Ref.Tag
			out.objects[kind] = append(out.objects[kind], k)
		}
	}
	return out, nil
}

func (f *fleet) git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", f.gitops}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// documents decodes the documents of YAML.
func documents[T any](text string, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	var out []T
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var one T
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
}
