package bandit

// regression is a ridge regression, with 1 for the ridge: inverse is that of A, a
// symmetric matrix of which it has the lower triangle, row by row.
type regression struct{ inverse, b []float64 }

// times is y = A⁻¹x.
func (r regression) times(y, x []float64) {
	clear(y)
	at := 0
	for i := range x {
		row := r.inverse[at : at+i+1]
		sum := 0.0
		for j, a := range row[:i] {
			sum += a * x[j]
			y[j] += a * x[i]
		}
		y[i] += sum + row[i]*x[i]
		at += i + 1
	}
}

// learn takes in what x has gained, by the formula of Sherman and Morrison.
func (r regression) learn(x []float64, gain float64) {
	y := make([]float64, len(x))
	r.times(y, x)
	r.subtract(y, 1+max(0, dot(y, x)))
	for i := range x {
		r.b[i] += gain * x[i]
	}
}

// subtract takes yyᵀ/by from A⁻¹.
func (r regression) subtract(y []float64, by float64) {
	at := 0
	for i := range y {
		for j := range i + 1 {
			r.inverse[at] -= y[i] * y[j] / by
			at++
		}
	}
}

// forget makes what is known well count 1+part times less, part being at most 1, and
// what is not known no less than before any feedback: A⁻¹ becomes
// A⁻¹ + part·(A⁻¹ − A⁻¹A⁻¹), whose eigenvalues stay at most 1.
func (r regression) forget(part float64) {
	part = min(max(part, 0), 1)
	n := len(r.b)
	full := r.full()
	at := 0
	for i := range n {
		for j := range i + 1 {
			r.inverse[at] += part * (r.inverse[at] - dot(full[i*n:(i+1)*n], full[j*n:(j+1)*n]))
			at++
		}
	}
	scale(r.b, 1/(1+part))
}

// full is A⁻¹ with both its triangles.
func (r regression) full() []float64 {
	n := len(r.b)
	full := make([]float64, n*n)
	at := 0
	for i := range n {
		for j := range i + 1 {
			full[i*n+j], full[j*n+i] = r.inverse[at], r.inverse[at]
			at++
		}
	}
	return full
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
