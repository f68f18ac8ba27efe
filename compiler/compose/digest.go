package compose

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

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
		}
	}
	text("|")
	for _, n := range p.schemas[i] {
		text(string(p.env.ConfigSchemas[n].Digest))
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

// rawDigests returns the digests of configs as bytes, which are half as long as
// their text.
func rawDigests(configs []model.Config) [][]byte {
	out := make([][]byte, len(configs))
	for i := range configs {
		sum, err := hex.DecodeString(string(configs[i].Digest))
		if err != nil || len(sum) != sha256.Size {
			sum = make([]byte, sha256.Size)
			copy(sum, configs[i].Digest) // a sick config has none
		}
		out[i] = sum
	}
	return out
}

// ownContracts are those of the assignment's workload and target; nil for none.
func (p *Plan) ownContracts(i int) [2]*model.Contract {
	return [2]*model.Contract{p.assignments[i].Workload.Requires, p.assignments[i].Target.Requires}
}
