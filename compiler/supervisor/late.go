package supervisor

import "slices"

// An environment is put off after it has used these fractions of its bounds: one eighth of
// the CPU time, or half of the memory.
const (
	lateCPU    = 8
	lateMemory = 2
)

// Defer sets whether the program puts off environments that take long. If so, the program
// begins again with the others, and evaluates the late ones after the output of the others
// is written.
func (s *Supervisor) Defer(may bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.defers = may
}

// Late returns the environments that were put off, in the order of their delay.
func (s *Supervisor) Late() []string {
	if s == nil {
		return nil
	}
	return s.options.State.Late
}

// late returns the evaluations to put off.
func (s *Supervisor) late(now measurement) []*Evaluation {
	if !s.defers || s.final {
		return nil
	}
	var out []*Evaluation
	for _, e := range s.active {
		if e.environment() != "" &&
			(e.cpu > e.bounds.CPU/lateCPU || now.memory > e.bounds.Memory/lateMemory) {
			out = append(out, e)
		}
	}
	return out
}

// withLate returns the state with environments that are put off.
func (s State) withLate(of []*Evaluation) State {
	s.Late = slices.Clone(s.Late)
	for _, e := range of {
		if name := e.environment(); !slices.Contains(s.Late, name) {
			s.Late = append(s.Late, name)
		}
	}
	return s
}

// Trial returns the environment that this process must try. The process that started it
// needs only its trips. Trial returns "" if this process is not a trial.
func (s *Supervisor) Trial() string {
	if s == nil {
		return ""
	}
	return s.options.State.Trial
}

// Trips returns the evaluations that are not repeated, because they exceeded a bound.
func (s *Supervisor) Trips() []Trip { return s.options.State.Trips }

// TrialOf returns the state in which a child process tries an environment. With little, the
// trial may use only the fraction of its bounds after which an environment is put off.
func (s *Supervisor) TrialOf(environment string, little bool) State {
	state := s.options.State
	state.Late, state.Trial, state.Little = nil, environment, little
	return state
}

// Learn adds the trips of a trial to the trips of this process.
func (s *Supervisor) Learn(trips []Trip) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range trips {
		if !slices.ContainsFunc(s.options.State.Trips, t.repeats) {
			s.options.State.Trips = append(s.options.State.Trips, t)
		}
	}
}
