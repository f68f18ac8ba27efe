package compose

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// digest identifies all that the assignment's graph is composed of, and all that
// is reported about it.
func (p *Plan) digest(i int) [sha256.Size]byte {
	b := p.scratch[:0]
	text := func(s string) {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	for _, n := range p.configs[i] {
		config := &p.env.Configs[n]
		b = append(b, p.configDigests[n]...)
		if config.Facts != nil {
			b = p.facts(i, config.Facts, nil).AppendBinary(b)
			if usesCluster(config) {
				text(p.assignments[i].ClusterType.Name)
				text(strconv.FormatBool(p.uncontracted(p.assignments[i].ClusterType)))
			}
		}
	}
	text("|")
	for _, n := range p.schemas[i] {
		b = append(b, p.schemaDigests[n]...)
	}
	for _, contract := range p.ownContracts(i) {
		text("")
		if contract != nil {
			text(string(contract.Digest))
			text(contract.Ref.String())
		}
	}
	p.scratch = b
	return sha256.Sum256(b)
}

// rawDigests returns the digests of entities as bytes, which are half as long as
// their text.
func rawDigests[E any](entities []E, digest func(*E) model.Digest) [][]byte {
	out := make([][]byte, len(entities))
	for i := range entities {
		text := digest(&entities[i])
		sum, err := hex.DecodeString(string(text))
		if err != nil || len(sum) != sha256.Size {
			sum = make([]byte, sha256.Size)
			copy(sum, text) // an invalid entity has none
		}
		out[i] = sum
	}
	return out
}

// ownContracts are those of the assignment's workload and target; nil for none.
func (p *Plan) ownContracts(i int) [2]*model.Contract {
	return [2]*model.Contract{p.assignments[i].Workload.Requires, p.assignments[i].Target.Requires}
}
