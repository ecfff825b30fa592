SELECT {tag_as:t.name}, {tag_as:t.driver}, d.fuel_state
		FROM tags t INNER JOIN diagnostics d ON d.tags_id = t.id
			AND d.time = (SELECT max(l.time) FROM diagnostics l WHERE l.tags_id = t.id)
		WHERE {tag:t.name} IS NOT NULL
		AND d.fuel_state < 0.1
		AND {tag:t.fleet} = '{fleet}'
