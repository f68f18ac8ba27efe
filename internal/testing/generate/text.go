package generate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso"
)

// entry is one entity of a collection: its key, and the lines of its struct.
type entry struct {
	name  string
	lines []string
}

// line appends a field. A value is written as JSON, which is CUE, with its keys
// sorted; a value of type expr as it is.
func (e *entry) line(field string, value any) {
	e.lines = append(e.lines, field+": "+cueText(value))
}

// expr is CUE that is not JSON.
type expr string

func cueText(value any) string {
	if x, ok := value.(expr); ok {
		return string(x)
	}
	text, err := json.MarshalIndent(value, "\t\t", "\t")
	if err != nil {
		panic(fmt.Sprintf("generate: %v", err)) // values are maps, slices and scalars
	}
	return string(text)
}

// oneOf is the disjunction of strings.
func oneOf(values []string) expr {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = fmt.Sprintf("%q", v)
	}
	return expr(strings.Join(quoted, " | "))
}

// perFile is the number of entries of a file, as if teams had split it.
const perFile = 100

// addFiles adds the files of a collection: <path>-000.cue and so on.
func addFiles(files map[string]string, path, collection string, entries []entry) {
	for i := 0; i*perFile < len(entries); i++ {
		var b strings.Builder
		fmt.Fprintf(&b, "package platform\n\n%s: {\n", collection)
		for _, e := range entries[i*perFile : min((i+1)*perFile, len(entries))] {
			fmt.Fprintf(&b, "\t%q: {\n", e.name)
			for _, l := range e.lines {
				fmt.Fprintf(&b, "\t\t%s\n", l)
			}
			b.WriteString("\t}\n")
		}
		b.WriteString("}\n")
		files[fmt.Sprintf("%s-%03d.cue", path, i)] = b.String()
	}
}

const moduleText = `module: "generated.example/platform@v0"
language: version: "v0.17.0"
deps: "` + kalypso.ModulePath + `": v: "` + kalypso.ModuleVersion + `"
`

const platformText = `package platform

import (
	"kalypso.io/schema"
	"kalypso.io/stdlib/namespace"
)

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
clusters:           schema.#Clusters
workloads:          schema.#Workloads
registrations:      schema.#Registrations
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
configSchemas:      schema.#ConfigSchemas
namespaceServices:  schema.#NamespaceServices
reconcilers:        schema.#Reconcilers

environments: dev: gitops: {repo: "https://git.example.com/generated/gitops", branch: "deploy", path: "dev"}

reconcilers: {
	flux: flux: {interval: "5m", secretRef: "gitops", credentials: {"git.example.com": secretRef: "gitops", "charts.example.com": secretRef: "charts", "registry.example.com": secretRef: "registry"}}
	argocd: argocd: {}
}

namespaceServices: {
	default: labels: "example.com/cost-center": "generated"
	guarded: namespace.#Small & {labels: "example.com/cost-center": "generated"}
}

// One config that is a function of the assignment, of facts that many share.
configs: whereabouts: {
	#assignment: schema.#Assignment
	match: {}
	values: WHEREABOUTS: "\(#assignment.environment)/\(#assignment.workspace)"
}
`
