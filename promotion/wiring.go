package promotion

// observer finds out how far rollouts are.
type observer struct {
	state   *sessionState
	records *records
}

// judge asks the gates.
type judge struct {
	state    *sessionState
	records  *records
	observer *observer
}

// chooser chooses what a stage may get next, for an intent.
type chooser struct {
	state    *sessionState
	records  *records
	observer *observer
	judge    *judge
	st       *stop
	intent   Intent
}

// maker makes the commits of steps, and pushes none.
type maker struct{ state *sessionState }

// planner says what could be done, and changes nothing.
type planner struct {
	state    *sessionState
	records  *records
	observer *observer
	judge    *judge
	maker    *maker
}

// reporter writes to statuses how far rollouts are.
type reporter struct {
	state    *sessionState
	observer *observer
}

// pusher pushes to the branches of environments.
type pusher struct {
	state    *sessionState
	records  *records
	reporter *reporter
}

// proposer proposes steps to people, and merges what they approved.
type proposer struct {
	state   *sessionState
	planner *planner
	pusher  *pusher
}

// applier carries plans out.
type applier struct {
	state    *sessionState
	planner  *planner
	reporter *reporter
	pusher   *pusher
	proposer *proposer
}

// decider carries out what people decide.
type decider struct {
	state    *sessionState
	planner  *planner
	pusher   *pusher
	proposer *proposer
	applier  *applier
}

// hydrator writes what GitOps Promoter promotes.
type hydrator struct {
	state   *sessionState
	planner *planner
	pusher  *pusher
}

// auditor rebuilds what happened.
type auditor struct {
	state   *sessionState
	records *records
}

func newRecords(state *sessionState) *records {
	return &records{state: state, found: map[recordKey]string{}}
}

func newPlanner(state *sessionState, records *records, observer *observer) *planner {
	return &planner{state, records, observer, &judge{state, records, observer}, &maker{state}}
}
