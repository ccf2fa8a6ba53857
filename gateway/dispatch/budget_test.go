package dispatch

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestBudget(t *testing.T) {
	b := NewBudget(extraShare)
	spend := func() (n int) {
		for b.Spend() {
			n++
		}
		return n
	}
	if n := spend(); n != extraSaved {
		t.Errorf("%d calls were saved up at first", n)
	}
	for range extraEvery - 1 {
		b.earn()
	}
	if n := spend(); n != 0 {
		t.Errorf("%d calls for %d first ones", n, extraEvery-1)
	}
	b.earn()
	if n := spend(); n != 1 {
		t.Errorf("%d calls for %d first ones", n, extraEvery)
	}
	for range 10 * extraSaved * extraEvery {
		b.earn()
	}
	if n := spend(); n != extraSaved {
		t.Errorf("%d calls can be saved up", n)
	}
}

func TestBudgetOfAShare(t *testing.T) {
	b := NewBudget(0.5)
	for b.Spend() {
	}
	if b.earn(); b.Spend() {
		t.Error("one first call pays for an extra one")
	}
	if b.earn(); !b.Spend() {
		t.Error("two first calls do not pay for an extra one")
	}
}

func TestBudgetIsNotOverspent(t *testing.T) {
	b := NewBudget(extraShare)
	var spent atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				b.earn()
				if b.Spend() {
					spent.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := spent.Load(); n > extraSaved+8000/extraEvery+1 {
		t.Errorf("%d spent", n)
	}
}
