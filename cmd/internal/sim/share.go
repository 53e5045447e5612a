package sim

// share is a tenant's starts in a queue and its fair share of them. Only time counts in which it
// wanted more: it had a due job waiting, and was below its concurrency limit.
type share struct {
	wants bool
	since float64 // due of a weight of 1 when the tenant began to want
	got   float64
	fair  float64
}

// sharing divides the starts of a queue among the tenants that want them, by weight. A tenant that
// takes its last waiting job, or reaches its limit, got all that it wanted: it leaves, and the
// others share the rest.
type sharing struct {
	weight float64 // of all tenants that want
	due    float64 // fair share so far of a weight of 1 that always wanted
}

func (t *tenant) wantsMore() bool {
	return t.waiting > 0 && (t.concurrency == 0 || t.inFlight < t.concurrency)
}

// see records that a tenant may have begun or ceased to want.
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

// part returns how much of its fair share a tenant got, at most 1. A tenant that never had to share
// got all.
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

// jain is Jain's index of fairness: 1 if all parts are equal, 1/n if one of n has all.
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
