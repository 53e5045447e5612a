// Package graph sorts things that wait for each other.
//
// Begin with [Sort].
//
// Read next: order.go of package sluice, which sorts a batch of jobs.
package graph

import "slices"

// Sort returns an order in which each node comes behind those that it waits for, and the circles of nodes that wait for
// each other. Node i waits for the nodes waits[i]. The nodes of circles are not in the order.
func Sort(waits [][]int) (order []int, circles [][]int) {
	s := sorting{waits: waits, marks: make([]mark, len(waits))}
	for i := range waits {
		s.visit(i)
	}
	inCircle := make(map[int]bool)
	for _, circle := range s.circles {
		for _, i := range circle {
			inCircle[i] = true
		}
	}
	return slices.DeleteFunc(s.order, func(i int) bool { return inCircle[i] }), s.circles
}

// mark says whether visit has seen a node.
type mark int

const (
	unseen mark = iota
	onPath
	seen
)

// sorting is a walk over the nodes.
type sorting struct {
	waits   [][]int
	marks   []mark
	path    []int // from a node to a node that it waits for, and so on
	order   []int
	circles [][]int
}

// visit adds a node to the order, after all nodes that it waits for.
func (s *sorting) visit(i int) {
	switch s.marks[i] {
	case seen:
		return
	case onPath:
		s.circles = append(s.circles, slices.Clone(s.path[slices.Index(s.path, i):]))
		return
	}
	s.marks[i] = onPath
	s.path = append(s.path, i)
	for _, before := range s.waits[i] {
		s.visit(before)
	}
	s.path = s.path[:len(s.path)-1]
	s.marks[i] = seen
	s.order = append(s.order, i)
}
