package io.pgque.engine;

import java.sql.SQLException;
import java.util.stream.LongStream;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

/**
 * Random runs of the engine against a model of it. What is committed is delivered at
 * least once to whoever was subscribed before, exactly once where nothing failed, in the
 * order of ids inside a batch; what is rolled back never is.
 * <p>
 * The system property {@code pgque.model.seed} repeats one run, {@code pgque.model.runs}
 * sets their number.
 */
@PgqueDatabase
class EngineModelTests {

	private static final int STEPS = 150;

	TestDatabase database;

	@ParameterizedTest(name = "seed {0}")
	@MethodSource("seeds")
	void randomRun(long seed) throws SQLException {
		try (EngineModel model = new EngineModel(this.database, seed)) {
			try {
				model.run(STEPS);
				model.finish();
			}
			catch (SQLException | AssertionError ex) {
				throw new AssertionError("Repeat with -Dpgque.model.seed=%d%nLast steps:%n  %s".formatted(seed,
						String.join(System.lineSeparator() + "  ", model.log())), ex);
			}
		}
	}

	static LongStream seeds() {
		Long seed = Long.getLong("pgque.model.seed");
		return (seed != null) ? LongStream.of(seed)
				: LongStream.rangeClosed(1, Integer.getInteger("pgque.model.runs", 20));
	}

}
