package io.pgque.observation;

import io.micrometer.observation.Observation;

/**
 * A started observation with its scope on this thread. Each step is taken even if the one
 * before it failed.
 */
final class RunningObservation {

	private final ObservationGuard guard;

	private final Observation observation;

	private Observation.Scope scope = Observation.Scope.NOOP;

	RunningObservation(ObservationGuard guard, Observation observation) {
		this.guard = guard;
		this.observation = observation;
	}

	RunningObservation start() {
		this.guard.run(this.observation::start);
		this.guard.run(() -> this.scope = this.observation.openScope());
		return this;
	}

	void error(Throwable failure) {
		this.guard.run(() -> this.observation.error(failure));
	}

	void end() {
		this.guard.run(this.scope::close);
		this.guard.run(this.observation::stop);
	}

}
