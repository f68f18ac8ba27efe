package randplatform

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/archive"
)

// pinned is a source that kalypso.lock pins, with its content in the platform's
// vendor folder.
type pinned struct {
	source dependency.Source
	// content makes the content of a revision, which may be one that is broken.
	content  func(revision int, broken bool) []byte
	revision int
}

// harm is the damage that a breakage does to a pinned source.
type harm int

const (
	unharmed harm = iota
	broken        // its content is pinned, and cannot be used
	unlocked      // kalypso.lock does not have it
	absent        // the vendor folder does not have its content
)

// pinnedSources are the sources of all platforms. Nobody uses the last one.
func pinnedSources() []pinned {
	return []pinned{
		{source: dependency.Source{Kind: dependency.Chart, URL: "https://charts.example.com",
			Chart: "plain", Version: "1.x"}, content: plainChart},
		{source: dependency.Source{Kind: dependency.Chart,
			URL: "oci://registry.example.com/charts/asking", Version: "2.0.0"}, content: askingChart},
		{source: dependency.Source{Kind: dependency.Git, URL: "https://git.example.com/rendered",
			Branch: "main"}, content: folders},
		{source: dependency.Source{Kind: dependency.OCI, URL: "oci://registry.example.com/rendered",
			Tag: "live"}, content: folders},
		{source: dependency.Source{Kind: dependency.Git, URL: "https://git.example.com/registered",
			Branch: "main"}, content: registered},
		{source: dependency.Source{Kind: dependency.Git, URL: "https://git.example.com/unused", Tag: "v1"}, content: folders},
	}
}

// addContent adds kalypso.lock and the vendor folder to the platform's files.
func (p *Platform) addContent(files map[string]string) {
	var entries []dependency.Entry
	for i := range p.pinned {
		s := &p.pinned[i]
		h := p.harmOf(i)
		data := s.content(s.revision, h == broken)
		digest := dependency.DigestOf(data)
		if h != unlocked {
			entries = append(entries, dependency.Entry{Source: s.source, Revision: s.revisionText(),
				Content: digest, Size: int64(len(data))})
		}
		if digits := strings.TrimPrefix(string(digest), "sha256:"); h != absent {
			files["vendor/sha256/"+digits[:2]+"/"+digits] = string(data)
		}
	}
	text, err := json.MarshalIndent(map[string]any{"apiVersion": "kalypso.io/v1alpha1", "kind": "Lock",
		"sources": dependency.NewLock(entries).Sources}, "", "  ")
	must(err)
	files[dependency.FileName] = string(text) + "\n"
}

// harmOf is the worst that breakages do to a pinned source.
func (p *Platform) harmOf(i int) harm {
	worst := unharmed
	for _, b := range p.broken {
		if b.harm != unharmed && b.pinned == i {
			worst = max(worst, b.harm)
		}
	}
	return worst
}

// revisionText returns the revision as kalypso.lock has it.
func (s *pinned) revisionText() string {
	switch s.source.Kind {
	case dependency.Chart:
		return fmt.Sprintf("1.%d.0", s.revision)
	case dependency.OCI:
		return fmt.Sprintf("sha256:%064x", s.revision)
	}
	return fmt.Sprintf("%040x", s.revision)
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec: {containers: [{name: server, image: "registry.example.com/server:%d"}]}
`

// plainChart takes values of the application and of the platform.
func plainChart(revision int, broken bool) []byte {
	template := fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-settings, labels: {chart: %q}}
data:
  revision: "%d"
  replicas: {{ .Values.replicas | quote }}
  platform: {{ .Values.platform | default dict | toJson | quote }}
  global: {{ .Values.global | default dict | toJson | quote }}
`, "{{ .Chart.Name }}", revision)
	if broken {
		template += "  broken: {{ .Values.none.at.all }}\n"
	}
	return chart(map[string]string{
		"Chart.yaml":              fmt.Sprintf("apiVersion: v2\nname: plain\nversion: 1.%d.0\n", revision),
		"values.yaml":             "replicas: 1\n",
		"templates/settings.yaml": template,
	})
}

// askingChart returns a chart that reads the capabilities of the cluster.
func askingChart(revision int, broken bool) []byte {
	template := fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-asking}
data:
  revision: "%d"
  old: {{ semverCompare "<1.33-0" .Capabilities.KubeVersion.Version | quote }}
  monitored: {{ .Capabilities.APIVersions.Has "monitoring.example.com/v1" | quote }}
`, revision)
	if broken {
		template += "  when: {{ now | quote }}\n"
	}
	return chart(map[string]string{
		"Chart.yaml":            fmt.Sprintf("apiVersion: v2\nname: asking\nversion: 2.0.%d\n", revision),
		"templates/asking.yaml": template,
	})
}

// folders are an overlay over a folder of manifests.
func folders(revision int, broken bool) []byte {
	base := fmt.Sprintf(deployment, revision)
	if broken {
		base = "kind: [\n"
	}
	return tree(map[string]string{
		"deploy/server.yaml":         base,
		"deploy/kustomization.yaml":  "resources: [server.yaml]\n",
		"overlay/kustomization.yaml": "resources: [../deploy]\nreplicas: [{name: server, count: 3}]\n",
		"README.md":                  "Not rendered.\n",
	})
}

// registered holds workloads and configs of another team, as CUE and as YAML.
func registered(revision int, broken bool) []byte {
	text := fmt.Sprintf(`package team

import "kalypso.io/schema"

workloads: "brought": {
	labels: tier: "core"
	deploymentTargets: live: {
		environment: "dev"
		version: "1.%d.0"
		manifests: git: {repo: "https://git.example.com/brought", branch: "main"}
	}
}
configs: "brought": {match: tier: "core", layer: 5, values: BROUGHT: %d}
configs: "brought-name": {
	#assignment: schema.#Assignment
	match: workload: "brought"
	layer: 5
	values: BROUGHT_NAME: "\(#assignment.deploymentTarget)-%d"
}
`, revision, revision, revision/2)
	if broken {
		text += "workloads: brought: deploymentTargets: live: versoin: \"1\"\n"
	}
	return tree(map[string]string{
		"cue/team.cue": text,
		"yaml/batch.yaml": fmt.Sprintf(`apiVersion: scheduler.kalypso.io/v1alpha1
kind: Workload
metadata: {name: batch, labels: {tier: data}}
spec:
  deploymentTargets:
  - name: night
    environment: dev
    labels: {purpose: stable}
    manifests: {repo: "https://git.example.com/batch", branch: main, path: "./night-%d"}
`, revision),
	})
}

// chart returns the archive of a chart: the same bytes for the same files.
func chart(files map[string]string) []byte {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		must(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "chart/" + name, Mode: 0o644,
			Size: int64(len(files[name]))}))
		_, err := w.Write([]byte(files[name]))
		must(err)
	}
	must(w.Close())
	must(zip.Close())
	return out.Bytes()
}

func tree(files map[string]string) []byte {
	t := &archive.Tree{Files: map[string]archive.File{}}
	for name, text := range files {
		t.Files[name] = archive.File{Data: []byte(text)}
	}
	return archive.Pack(t)
}

func must(err error) {
	if err != nil {
		panic("randplatform: " + err.Error())
	}
}
