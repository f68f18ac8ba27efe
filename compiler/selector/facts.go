package selector

// Facts are the known facts of one entity, by name.
type Facts map[string]Fact

// Fact is the value of an entity under one name: texts, or a struct of facts.
//
// A Fact has several values if several sides of the entity carry the name. For example, a
// cluster type and a deployment target may have the same label with different values. If an
// entity always has a struct, its Facts must have an empty struct rather than none:
// `labels: {}` then holds for an entity without labels.
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
