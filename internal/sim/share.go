package sim

// share is what a tenant got of a queue's starts, and what its fair part of them was, over the time in
// which it wanted more: in which it had a job due and waiting, and was below its capacity.
type share struct {
	wants bool
	since float64 // what a unit of weight had been due when it began to want
	got   float64
	fair  float64
}

// sharing divides the starts of a queue among the tenants that want them, by weight. What a tenant
// takes with its last waiting job, or up to its capacity, is all that it wanted: it counts as served and
// leaves; the rest of the starts is divided among those that stay.
type sharing struct {
	weight float64 // of all who want
	due    float64 // what a unit of weight that always wanted had been due by now
}

func (t *tenant) wantsMore() bool {
	return t.waiting > 0 && (t.capacity == 0 || t.inFlight < t.capacity)
}

// see notes that a tenant may have begun to want, or ceased to.
func (s *sharing) see(t *tenant) {
	wants := t.wantsMore()
	if wants == t.share.wants {
		return
	}
	t.share.wants = wants
	if wants {
		s.weight += t.weight
		t.share.since = s.due
		return
	}
	s.weight -= t.weight
	t.share.fair += t.weight * (s.due - t.share.since)
}

// started divides the starts of one claim.
func (s *sharing) started(tenants []*tenant) {
	for _, t := range tenants {
		if t.share.wants {
			t.share.got++
		}
	}
	for _, t := range tenants {
		s.see(t)
	}
	rest := 0
	for _, t := range tenants {
		if t.share.wants {
			rest++
		}
	}
	if rest > 0 {
		s.due += float64(rest) / s.weight
	}
}

// part is how much of its fair part a tenant got, at most 1; whoever never had to share got it all.
func (s *sharing) part(t *tenant) float64 {
	fair := t.share.fair
	if t.share.wants {
		fair += t.weight * (s.due - t.share.since)
	}
	if fair <= t.share.got {
		return 1
	}
	return t.share.got / fair
}

// jain is Jain's index of fairness of the parts that the tenants got: 1 if all are alike, 1/n if one of
// n has it all.
func jain(parts []float64) float64 {
	var sum, squares float64
	for _, x := range parts {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(parts)) * squares)
}
