package flux

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
)

// shared is what Index needs to know of a folder. It says only what differs from
// the usual, because the provenance record holds it once per assignment.
type shared struct {
	// NoWait says that the folder's workload counts as ready once it is applied.
	NoWait bool `json:"noWait,omitempty"`
	// Rendered says that the folder holds the workload itself.
	Rendered bool `json:"rendered,omitempty"`
	// Variables are the names of the values that the folder gets from the cluster
	// that it is applied to, sorted; none where it gets none.
	Variables []string `json:"variables,omitempty"`
	// Decryption is how Flux decrypts the folder; nil where it does not.
	Decryption *decryptionOptions `json:"decryption,omitempty"`
}

// Needs returns the values that a folder takes from the entry of each cluster.
func (flux) Needs(shared json.RawMessage) []string {
	var out []string
	for _, id := range sharedOf(backends.Folder{Backend: "flux", Shared: shared}).Variables {
		_, name, found := strings.Cut(id, "/")
		if !found {
			name = id
		}
		out = append(out, name)
	}
	return out
}

// idsOf returns how shared has variables, sorted; nil for none.
func idsOf(all []variable) []string {
	var out []string
	for _, v := range all {
		out = append(out, v.id())
	}
	slices.Sort(out)
	return out
}

// encode returns the JSON of s, nil for the zero value.
func (s shared) encode() json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic("flux: " + err.Error()) // bools and strings always have JSON
	}
	if string(b) == "{}" {
		return nil
	}
	return b
}

// sharedOf returns what was shared of a folder: of one that another backend made,
// nothing.
func sharedOf(f backends.Folder) shared {
	var s shared
	if f.Backend == "flux" && len(f.Shared) > 0 {
		// It is what encode wrote: only a damaged record is not readable, and then
		// the folder is a usual one.
		_ = json.Unmarshal(f.Shared, &s)
	}
	return s
}
