package selector

// Facts are what is known of one entity, by name.
type Facts map[string]Fact

// Fact is what an entity has under one name: values, or a struct of facts.
//
// Several values stand for several sides of the entity that carry the name, as
// where a cluster type and a deployment target have a label with different
// values. Whoever makes facts gives an empty struct, not none, where the entity
// always has the struct: `labels: {}` then holds for an entity without labels.
type Fact struct {
	Values []string
	Facts  Facts // a struct unless it is nil; Values are ignored then
}

// Values returns a fact with these values; equal ones count once.
func Values(values ...string) Fact { return Fact{Values: values} }

// Labels returns a fact that is a struct of labels.
func Labels(labels map[string]string) Fact {
	facts := make(Facts, len(labels))
	for k, v := range labels {
		facts[k] = Values(v)
	}
	return Struct(facts)
}

// Struct returns a fact that is a struct.
func Struct(facts Facts) Fact {
	if facts == nil {
		facts = Facts{}
	}
	return Fact{Facts: facts}
}
