package gate

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Digest returns sha256:HEX of a decision, for a trailer: of the gates, of their
// answers, and of the reasons to pass over one. It stays the same as long as these do:
// the reasons of answers and times are left out, so a commit that has it can be made
// again.
func Digest(vs []Verdict) string {
	type decision struct {
		Gate    string `json:"gate"`
		Name    string `json:"name"`
		State   State  `json:"state"`
		Skipped string `json:"skipped"`
	}
	decisions := make([]decision, len(vs))
	for i, v := range vs {
		decisions[i] = decision{v.Gate, v.Name, v.State, v.Skipped}
	}
	text, err := json.Marshal(decisions)
	if err != nil {
		panic("strings cannot be JSON: " + err.Error()) // texts always can
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(text))
}
