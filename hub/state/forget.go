package state

// Forget forgets a cluster that the platform lists nowhere, with all that was observed of it, until it
// reports again. It returns nil where there is no such cluster; listed are the environments that list
// it, where it stays.
func (f *Fleet) Forget(name string) (changes *Changes, listed []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.seen[name] != nil
	for _, environment := range f.names {
		if e := f.environments[environment]; e != nil && e.byClust[name] != nil && e.byClust[name].listed {
			listed = append(listed, environment)
		}
	}
	if !found || len(listed) > 0 {
		return nil, listed
	}
	changes = &Changes{}
	f.forget(name, changes)
	return changes, nil
}

// forget takes a cluster out of the cluster types that list none; the changes may be nil.
func (f *Fleet) forget(name string, changes *Changes) {
	for _, environment := range f.names {
		e := f.environments[environment]
		if e == nil || e.byClust[name] == nil || e.byClust[name].listed {
			continue
		}
		c := e.byClust[name]
		for i := range c.pairs {
			changes.add(Change{env: e, cluster: c, target: i, Was: c.pairs[i].state, Gone: true})
		}
		e.remove(c)
		c.folder.recount()
	}
	delete(f.seen, name)
}
