package compose

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// digests are those of what assignments are configured by, in the order of the
// model.
type digests struct {
	configs, schemas [][sha256.Size]byte
	contracts        map[*model.Contract][sha256.Size]byte
	services         map[string][sha256.Size]byte
	reconcilers      map[string][sha256.Size]byte
	scratch          []byte
}

func digestsOf(env *model.Environment) *digests {
	d := &digests{
		contracts:   map[*model.Contract][sha256.Size]byte{},
		services:    map[string][sha256.Size]byte{},
		reconcilers: map[string][sha256.Size]byte{},
	}
	for i := range env.Configs {
		c := env.Configs[i]
		c.Match = model.Selector{}
		d.configs = append(d.configs, digestOf(c))
	}
	for i := range env.ConfigSchemas {
		s := env.ConfigSchemas[i]
		s.Match = model.Selector{}
		d.schemas = append(d.schemas, digestOf(s))
	}
	for i := range env.NamespaceServices {
		d.services[env.NamespaceServices[i].Name] = digestOf(env.NamespaceServices[i])
	}
	for i := range env.Reconcilers {
		d.reconcilers[env.Reconcilers[i].Name] = digestOf(env.Reconcilers[i])
	}
	return d
}

func (d *digests) contract(c *model.Contract) [sha256.Size]byte {
	sum, known := d.contracts[c]
	if !known {
		sum = digestOf(c)
		d.contracts[c] = sum
	}
	return sum
}

func digestOf(v any) [sha256.Size]byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("compose: " + err.Error())
	}
	return sha256.Sum256(b)
}
